//! All instances of a run, by number. A forgotten instance frees its memory but keeps its number.

use super::{Instance, Phase, Place, Role, Settlement};
use crate::keys::Path;
use crate::outcome::Outcome;
use windlass_ir::Value;
use windlass_ir::expr::StepId;

#[derive(Clone, Debug, PartialEq)]
pub struct Instances {
    all: Vec<Option<Box<Instance>>>,
    /// Represents every forgotten instance: a completed step.
    gone: Box<Instance>,
}

impl Default for Instances {
    fn default() -> Self {
        Self { all: Vec::new(), gone: Box::new(gone()) }
    }
}

impl Instances {
    /// The number of instances ever created.
    pub fn count(&self) -> u32 {
        u32::try_from(self.all.len()).expect("a run has fewer than 2^32 step instances")
    }

    pub fn add(&mut self, instance: Instance) -> Place {
        let place = Place(self.count());
        self.all.push(Some(Box::new(instance)));
        place
    }

    pub fn at(&self, place: Place) -> &Instance {
        self.all[place.index()].as_deref().unwrap_or(&self.gone)
    }

    /// Changes to a forgotten instance are discarded.
    pub fn at_mut(&mut self, place: Place) -> &mut Instance {
        match &mut self.all[place.index()] {
            Some(instance) => instance,
            None => {
                *self.gone = gone();
                &mut self.gone
            }
        }
    }

    pub fn forget(&mut self, place: Place) -> Option<Box<Instance>> {
        self.all[place.index()].take()
    }
}

fn gone() -> Instance {
    let settlement = Settlement { outcome: Outcome::Done(Value::Null), fails: false, recovered: false };
    let instance = Instance::new(0, StepId(0), Path::default(), None, Role::Body);
    Instance { phase: Phase::Settled(settlement), ..instance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_instance_counts_as_done_and_keeps_its_number() {
        let mut instances = Instances::default();
        let instance = |name: &str| {
            let path = Path::default().child(name.into(), None);
            Instance::new(0, StepId(0), path, None, Role::Body)
        };
        let (first, second) = (instances.add(instance("a")), instances.add(instance("b")));
        assert_eq!(instances.forget(first).map(|instance| *instance), Some(instance("a")));
        assert_eq!((instances.count(), instances.forget(first)), (2, None));
        instances.at_mut(first).attempts = 7;
        instances.at_mut(second).attempts = 1;
        assert!(instances.at(first).is_settled());
        assert_eq!((instances.at(second).attempts, instances.at(second).is_settled()), (1, false));
        assert_eq!(instances.at_mut(first).attempts, 0, "changes to a forgotten instance are discarded");
    }
}
