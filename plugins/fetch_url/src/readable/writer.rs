//! Lines of text in the making: white space, marks of items and cells. What the elements mean, `readable` knows.

/// What is between the text so far and the next word. The greater one wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    None,
    Space,
    Line,
    /// An empty line.
    Blank,
}

#[derive(Default)]
pub(super) struct Writer {
    text: String,
    words: usize,
    gap: Gap,
    /// Written before the next word: `- ` or `# `.
    mark: &'static str,
    /// Cells since the last word of this row.
    cells: usize,
    in_row: bool,
    row_has_words: bool,
    verbatim: usize,
    /// The line break after `<pre>` is not part of the text.
    at_verbatim_start: bool,
}

impl Writer {
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Returns the text from that place on.
    pub(super) fn since(&self, start: usize) -> &str {
        self.text.get(start..).unwrap_or_default()
    }

    pub(super) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// Ends the line; a second time in a row, leaves one empty.
    pub(super) fn end_line(&mut self) {
        if self.verbatim > 0 {
            self.at_verbatim_start = false;
            return self.characters("\n");
        }
        self.gap = if self.gap < Gap::Line { Gap::Line } else { Gap::Blank };
    }

    pub(super) fn item(&mut self, mark: &'static str) {
        self.gap(Gap::Line);
        self.mark = mark;
    }

    pub(super) fn end_item(&mut self, gap: Gap) {
        self.mark = "";
        self.gap(gap);
    }

    pub(super) fn start_row(&mut self, gap: Gap) {
        self.gap(gap);
        (self.cells, self.in_row, self.row_has_words) = (0, false, false);
    }

    pub(super) fn start_cell(&mut self) {
        self.cells += usize::from(self.in_row);
        self.in_row = true;
    }

    pub(super) fn start_verbatim(&mut self) {
        self.gap(Gap::Blank);
        self.verbatim += 1;
        self.at_verbatim_start = true;
    }

    pub(super) fn end_verbatim(&mut self) {
        self.verbatim = self.verbatim.saturating_sub(1);
        self.gap(Gap::Blank);
    }

    pub(super) fn characters(&mut self, text: &str) {
        if self.verbatim == 0 {
            return self.flowing(text);
        }
        let starts = std::mem::take(&mut self.at_verbatim_start);
        let text = if starts { text.strip_prefix('\n').unwrap_or(text) } else { text };
        if !text.is_empty() {
            self.begin_word();
            self.text.push_str(text);
        }
    }

    /// Adds text whose white space means no more than that words end.
    pub(super) fn flowing(&mut self, text: &str) {
        if text.starts_with(char::is_whitespace) {
            self.gap(Gap::Space);
        }
        for (index, word) in text.split_whitespace().enumerate() {
            self.gap(if index == 0 { Gap::None } else { Gap::Space });
            self.begin_word();
            self.text.push_str(word);
        }
        if text.ends_with(char::is_whitespace) {
            self.gap(Gap::Space);
        }
    }

    /// Adds text where the last word ends, before the gap.
    pub(super) fn append(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }

    fn begin_word(&mut self) {
        self.words += 1;
        let (gap, cells) = (std::mem::take(&mut self.gap), std::mem::take(&mut self.cells));
        if cells > 0 && self.row_has_words {
            self.trim();
            self.text.push(' ');
        } else {
            self.close(gap);
        }
        for _ in 0..cells {
            self.text.push_str("| ");
        }
        self.text.push_str(std::mem::take(&mut self.mark));
        self.row_has_words = true;
    }

    fn close(&mut self, gap: Gap) {
        if self.text.is_empty() {
            return;
        }
        match gap {
            Gap::None => {}
            Gap::Space => self.text.push(' '),
            Gap::Line | Gap::Blank => {
                self.trim();
                self.text.push_str(if gap == Gap::Line { "\n" } else { "\n\n" });
            }
        }
    }

    fn trim(&mut self) {
        self.text.truncate(self.text.trim_end_matches([' ', '\t', '\n']).len());
    }
}
