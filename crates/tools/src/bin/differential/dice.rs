//! Numbers that look like chance and are the same on every machine.

pub struct Dice(u64);

impl Dice {
    /// The dice of one part of a test: the same seed and part give the same throws, however many threads work. Both are
    /// mixed, or the throws of one part would be those of its neighbour, one throw later.
    pub fn of(seed: u64, part: u64) -> Self {
        Self(mixed(seed ^ mixed(part.wrapping_add(1))))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        (self.next() % sides.max(1) as u64) as usize
    }

    /// True `parts` times of a hundred.
    pub fn chance(&mut self, parts: usize) -> bool {
        self.roll(100) < parts
    }

    pub fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.roll(things.len())]
    }
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
