//! Determines the context of an expression in a shell command.
//!
//! Values are inserted quoted. Between plain words that is enough, and the author's own quotes can be closed first.
//! Anywhere else (in a substitution, a comment, a here-document) the value could become code. This scanner follows
//! only what it understands for certain; after anything else the rest is unknown, and expressions there are refused.

/// What the shell is reading at a point of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    Words,
    SingleQuotes,
    DoubleQuotes,
    Comment,
    HereDocument,
    /// Inside `$(…)`, `${…}` or backticks.
    Substitution,
    /// Right after a backslash.
    Backslash,
    /// After something that this scanner does not follow.
    Tangled,
    /// The command is not for a shell.
    OtherLanguage,
}

/// Follows a command through its pieces of text; expressions are between two pieces.
#[derive(Debug)]
pub struct ShellText {
    /// Everything that is open, the innermost last.
    open: Vec<Open>,
    escaped: bool,
    comment: bool,
    at_word_start: bool,
    word: String,
    here: Here,
    tangled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    SingleQuotes,
    DoubleQuotes,
    /// `$(…)`, with the number of open parentheses in it.
    Parentheses(u32),
    /// `${…}`
    Braces,
    Backticks,
}

#[derive(Debug, PartialEq)]
enum Here {
    None,
    /// `<<` was read; the delimiter is being collected.
    Delimiter(String),
    /// The document starts with the next line.
    Pending(String),
    /// In the document; the current line so far.
    Body {
        delimiter: String,
        line: String,
    },
}

impl Default for ShellText {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            escaped: false,
            comment: false,
            at_word_start: true,
            word: String::new(),
            here: Here::None,
            tangled: false,
        }
    }
}

impl ShellText {
    /// Scans a piece of text.
    pub fn read(&mut self, text: &str) {
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            if self.letter(letter, letters.peek().copied()) {
                letters.next();
            }
        }
    }

    /// Skips an expression: its value is always one word.
    pub fn expression(&mut self) {
        self.escaped = false;
        self.at_word_start = false;
        self.word.push('?');
        match &mut self.here {
            Here::Body { line, .. } => line.push('?'),
            Here::Delimiter(_) => self.tangled = true,
            Here::None | Here::Pending(_) => {}
        }
    }

    pub fn around(&self) -> Around {
        let substitution = self.open.iter().any(|open| match open {
            Open::Parentheses(_) | Open::Braces | Open::Backticks => true,
            Open::SingleQuotes | Open::DoubleQuotes => false,
        });
        match (&self.here, self.open.last()) {
            _ if self.tangled => Around::Tangled,
            (Here::Body { .. }, _) => Around::HereDocument,
            (Here::Delimiter(_), _) => Around::Tangled,
            _ if self.comment => Around::Comment,
            _ if substitution => Around::Substitution,
            _ if self.escaped => Around::Backslash,
            (_, Some(Open::SingleQuotes)) => Around::SingleQuotes,
            (_, Some(Open::DoubleQuotes)) => Around::DoubleQuotes,
            (_, Some(Open::Parentheses(_) | Open::Braces | Open::Backticks) | None) => Around::Words,
        }
    }

    /// Reads one character; returns whether it consumed the next one as well.
    fn letter(&mut self, letter: char, next: Option<char>) -> bool {
        if self.in_here_document(letter) {
            return false;
        }
        if self.comment {
            self.comment = letter != '\n';
            if !self.comment {
                self.line_ends();
            }
            return false;
        }
        if std::mem::take(&mut self.escaped) {
            self.at_word_start = false;
            return false;
        }
        match self.open.last().copied() {
            Some(Open::SingleQuotes) => {
                if letter == '\'' {
                    self.open.pop();
                }
                false
            }
            Some(Open::DoubleQuotes) => self.in_double_quotes(letter, next),
            Some(Open::Braces) => {
                match letter {
                    '}' => drop(self.open.pop()),
                    // Quotes and nested substitutions follow their own rules in here.
                    '\'' | '"' | '`' | '\\' | '$' => self.tangled = true,
                    _ => {}
                }
                false
            }
            Some(Open::Parentheses(_) | Open::Backticks) | None => self.among_words(letter, next),
        }
    }

    fn in_double_quotes(&mut self, letter: char, next: Option<char>) -> bool {
        match (letter, next) {
            ('"', _) => drop(self.open.pop()),
            ('\\', _) => self.escaped = true,
            ('$', Some('(' | '{')) => {
                self.substitution(next);
                return true;
            }
            ('`', _) => self.backtick(),
            _ => {}
        }
        false
    }

    fn substitution(&mut self, bracket: Option<char>) {
        self.open.push(if bracket == Some('{') { Open::Braces } else { Open::Parentheses(1) });
        self.at_word_start = true;
        self.word.clear();
    }

    fn among_words(&mut self, letter: char, next: Option<char>) -> bool {
        if self.in_delimiter(letter) {
            return false;
        }
        let ends_word = letter.is_whitespace() || ";&|()<>".contains(letter);
        let starts_word = std::mem::replace(&mut self.at_word_start, ends_word);
        if ends_word {
            self.word_ends();
        } else {
            self.word.push(letter);
        }
        match (letter, next) {
            ('\'', _) => self.open.push(Open::SingleQuotes),
            ('"', _) => self.open.push(Open::DoubleQuotes),
            ('\\', _) => self.escaped = true,
            ('$', Some('(' | '{')) => {
                self.substitution(next);
                return true;
            }
            // Some shells treat a quote after a dollar sign specially.
            ('$', Some('\'' | '"')) => self.tangled = true,
            ('`', _) => self.backtick(),
            ('(', _) => self.parenthesis(1),
            (')', _) => self.parenthesis(-1),
            ('#', _) if starts_word => self.comment = true,
            ('<', Some('<')) => {
                // A second one on the same line, or one inside a substitution, is not supported.
                self.tangled |= self.here != Here::None || !self.open.is_empty();
                self.here = Here::Delimiter(String::new());
                return true;
            }
            ('\n', _) => self.line_ends(),
            _ => {}
        }
        false
    }

    /// `case` has closing parentheses without opening ones, so the end of a surrounding substitution is unknown.
    fn word_ends(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word == "case" && !self.open.is_empty() {
            self.tangled = true;
        }
    }

    fn parenthesis(&mut self, change: i32) {
        let Some(Open::Parentheses(depth)) = self.open.last_mut() else { return };
        *depth = depth.saturating_add_signed(change);
        if *depth == 0 {
            self.open.pop();
            self.at_word_start = false;
        }
    }

    /// Backticks do not nest: one inside anything opened after the first is not supported.
    fn backtick(&mut self) {
        match self.open.last() {
            Some(Open::Backticks) => drop(self.open.pop()),
            _ if self.open.contains(&Open::Backticks) => self.tangled = true,
            _ => self.open.push(Open::Backticks),
        }
    }

    /// Collects the delimiter of a here-document: a plain word, or one in quotes.
    fn in_delimiter(&mut self, letter: char) -> bool {
        let Here::Delimiter(word) = &mut self.here else { return false };
        let bare = word.trim_start_matches(['-', '\'', '"', '\\']);
        match letter {
            ' ' | '\t' if bare.is_empty() && !word.contains(['\'', '"', '\\']) => true,
            '-' if word.is_empty() => {
                word.push(letter);
                true
            }
            '\'' | '"' | '\\' => {
                word.push(letter);
                true
            }
            _ if letter.is_ascii_alphanumeric() || letter == '_' => {
                word.push(letter);
                true
            }
            _ => {
                let word = std::mem::take(word);
                match delimiter(&word).filter(|_| letter.is_whitespace() || ";&|<>".contains(letter)) {
                    Some(delimiter) => self.here = Here::Pending(delimiter),
                    None => {
                        self.here = Here::None;
                        self.tangled = true;
                    }
                }
                false
            }
        }
    }

    fn line_ends(&mut self) {
        self.at_word_start = true;
        if let Here::Pending(delimiter) = &mut self.here {
            let delimiter = std::mem::take(delimiter);
            self.here = Here::Body { delimiter, line: String::new() };
        }
    }

    fn in_here_document(&mut self, letter: char) -> bool {
        let Here::Body { delimiter, line } = &mut self.here else { return false };
        match letter {
            '\n' if line.trim_start_matches('\t') == *delimiter => {
                self.here = Here::None;
                self.at_word_start = true;
            }
            '\n' => line.clear(),
            letter => line.push(letter),
        }
        true
    }
}

/// The word that ends a here-document, from its notation: `EOF`, `-EOF`, `'EOF'`, `"EOF"` or `\EOF`.
fn delimiter(written: &str) -> Option<String> {
    let word = written.strip_prefix('-').unwrap_or(written);
    let quoted = |quote: char| word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let bare = quoted('\'').or_else(|| quoted('"')).or_else(|| word.strip_prefix('\\')).unwrap_or(word);
    let plain = !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    plain.then(|| bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: Around) {
        let (before, _) = command.split_once('@').expect("a mark");
        let mut text = ShellText::default();
        text.read(before);
        assert_eq!(text.around(), expected, "{command}");
    }

    #[test]
    fn words_and_quotes() {
        check("echo @", Around::Words);
        check("echo --name=@", Around::Words);
        check("echo \"@\"", Around::DoubleQuotes);
        check("echo '@'", Around::SingleQuotes);
        check("echo \"a\" @", Around::Words);
        check("echo 'it' \"\\\"@", Around::DoubleQuotes);
        check("echo \\'@", Around::Words);
        check("echo \\@", Around::Backslash);
        check("(cd x && echo @)", Around::Words);
        check("case a in a) echo @ ;; esac", Around::Words);
    }

    #[test]
    fn substitutions() {
        check("echo \"$(cat @)\"", Around::Substitution);
        check("echo \"$(cat '@')\"", Around::Substitution);
        check("echo $(cat x) @", Around::Words);
        check("echo \"$(cat x) @\"", Around::DoubleQuotes);
        check("x=$( (true); date ); echo @", Around::Words);
        check("x=$((1 + (2))); echo @", Around::Words);
        check("\"$( (true); printf %s @)\"", Around::Substitution);
        check("echo `cat @`", Around::Substitution);
        check("echo \"`cat x` @\"", Around::DoubleQuotes);
        check("echo \"${V:-@}\"", Around::Substitution);
        check("echo \"${V} @\"", Around::DoubleQuotes);
        check("echo ${#x} @", Around::Words);
        check("\"$(case a in a) printf %s @;; esac)\"", Around::Tangled);
        check("echo ${V:-\"a}b\"} @", Around::Tangled);
        check("echo $'a\\'b' @", Around::Tangled);
        check("echo `echo \"`date`\"` @", Around::Tangled);
    }

    #[test]
    fn comments() {
        check("true # not @", Around::Comment);
        check("true # not\necho @", Around::Words);
        check("echo a#b @", Around::Words);
        check("(true)# @", Around::Comment);
        check("true;# @", Around::Comment);
        check("true<x# @", Around::Words);
    }

    #[test]
    fn here_documents() {
        check("cat <<EOF\n@\nEOF", Around::HereDocument);
        check("cat <<'EOF'\nx\n@", Around::HereDocument);
        check("cat <<-EOF\nx\n\tEOF\necho @", Around::Words);
        check("cat <<EOF\nx\nEOF\necho @", Around::Words);
        check("cat <<EOF > @", Around::Words);
        check("cat << EOF | grep x\n@", Around::HereDocument);
        check("cat <<E.F\nE\n@", Around::Tangled);
        check("cat <<\"A B\"\nAB\n@", Around::Tangled);
        check("cat <<A <<B\n@", Around::Tangled);
        check("cat <<<x @", Around::Tangled);
        check("$(cat <<A\nA\n) @", Around::Tangled);
        check("cat <<@", Around::Tangled);
    }
}
