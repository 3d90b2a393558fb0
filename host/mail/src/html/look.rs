//! How an element looks, as far as that hides its text, and the style that makes it so.

use super::color::{Paint, paint};
use super::css::{fraction, is_far, length, lowered};

/// How much two colors must differ in one channel to be told apart.
const CONTRAST: u8 = 24;

/// How an element looks, as far as that hides its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) gone: bool,
    invisible: bool,
    tiny: bool,
    ink: Paint,
    ground: Paint,
}

impl Default for Look {
    fn default() -> Self {
        let (ink, ground) = (Paint::Color([0; 3]), Paint::Color([255; 3]));
        Self { gone: false, invisible: false, tiny: false, ink, ground }
    }
}

impl Look {
    pub(super) fn is_hidden(&self) -> bool {
        let is_drowned = match (self.ink, self.ground) {
            (Paint::Clear, _) => true,
            (Paint::Color(ink), Paint::Color(ground)) => {
                ink.iter().zip(ground).all(|(ink, ground)| ink.abs_diff(ground) <= CONTRAST)
            }
            _ => false,
        };
        self.gone || self.invisible || self.tiny || is_drowned
    }

    /// As an element within this one, which has that style.
    pub(super) fn with(self, own: &Style) -> Self {
        let is_flat = own.flat.contains(&Some(true)) && own.clips == Some(true);
        Self {
            gone: self.gone || is_flat || own.gone.contains(&Some(true)),
            invisible: own.invisible.unwrap_or(self.invisible),
            tiny: match own.size {
                Some(Size::Tiny) => true,
                Some(Size::Fixed) => false,
                Some(Size::Relative) | None => self.tiny,
            },
            ink: own.ink.unwrap_or(self.ink),
            ground: own.ground.filter(|ground| *ground != Paint::Clear).unwrap_or(self.ground),
        }
    }
}

/// Properties each of which can hide an element with all in it.
#[derive(Clone, Copy)]
pub(super) enum Gone {
    Attribute,
    Display,
    Opacity,
    Left,
    Top,
    Right,
    Bottom,
    Margin,
    Indent,
    Transform,
    Clip,
    Filter,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Tiny,
    Fixed,
    /// Of its parent's.
    Relative,
}

/// What a style declares. Of two declarations of a property, the last counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Style {
    pub(super) gone: [Option<bool>; 12],
    invisible: Option<bool>,
    size: Option<Size>,
    ink: Option<Paint>,
    ground: Option<Paint>,
    /// `height`, `width` and their limits are next to nothing.
    flat: [Option<bool>; 4],
    clips: Option<bool>,
}

impl Style {
    pub(super) fn declare_all(&mut self, style: &str) {
        for declaration in lowered(style).split(';') {
            if let Some((property, value)) = declaration.split_once(':') {
                self.declare(property.trim(), value.trim().trim_end_matches("!important").trim());
            }
        }
    }

    pub(super) fn declare(&mut self, property: &str, value: &str) {
        let gone = |kind: Gone, is: bool| (kind as usize, is);
        let (kind, is_gone) = match property {
            "display" => gone(Gone::Display, value == "none"),
            "content-visibility" => gone(Gone::Filter, value == "hidden"),
            "opacity" => gone(Gone::Opacity, fraction(value).is_some_and(|part| part <= 0.05)),
            "filter" => {
                let part = value.split_once("opacity(").and_then(|(_, rest)| fraction(rest.split(')').next()?));
                gone(Gone::Filter, part.is_some_and(|part| part <= 0.05))
            }
            "left" => gone(Gone::Left, is_far(value)),
            "top" => gone(Gone::Top, is_far(value)),
            "right" => gone(Gone::Right, is_far(value)),
            "bottom" => gone(Gone::Bottom, is_far(value)),
            "margin" | "margin-left" | "margin-top" | "margin-right" => {
                gone(Gone::Margin, value.split_whitespace().any(is_far))
            }
            "text-indent" => gone(Gone::Indent, is_far(value)),
            "transform" => {
                let mut arguments = value.split(['(', ',', ')', ' ']);
                gone(Gone::Transform, value.contains("scale(0") || arguments.any(is_far))
            }
            "clip" => {
                gone(Gone::Clip, value.starts_with("rect(") && !value.contains(|c: char| ('2'..='9').contains(&c)))
            }
            "clip-path" => {
                let whole = ["inset(50%", "inset(100%", "circle(0", "polygon(0 0,0 0", "polygon(0 0, 0 0"];
                gone(Gone::Clip, whole.iter().any(|shape| value.starts_with(shape)))
            }
            _ => return self.declare_more(property, value),
        };
        self.gone[kind] = Some(is_gone);
    }

    fn declare_more(&mut self, property: &str, value: &str) {
        let flat = ["height", "max-height", "width", "max-width"].iter().position(|name| *name == property);
        match property {
            "visibility" => self.invisible = Some(value == "hidden" || value == "collapse"),
            "font-size" => self.size = size(value).or(self.size),
            // The size is what may have a line's height after a slash.
            "font" => {
                let mut sizes = value.split_whitespace().filter_map(|word| size(word.split('/').next()?));
                self.size = sizes.next_back().or(self.size);
            }
            "color" | "-webkit-text-fill-color" => self.ink = paint(value).or(self.ink),
            "background-color" => self.ground = paint(value).or(self.ground),
            // An image is not loaded by most, so what is below it is what a text stands on. A gradient has its first color.
            "background" | "background-image" => {
                let words = value.split_inclusive([')', ' ', ',']).flat_map(|word| word.rsplit("gradient("));
                let colors = words.map(|word| word.trim_matches([' ', ','])).filter_map(paint);
                let whole = paint(value).filter(|paint| *paint != Paint::Unknown);
                let found = whole.or_else(|| colors.into_iter().find(|paint| *paint != Paint::Unknown));
                self.ground = found.or(self.ground);
            }
            "overflow" | "overflow-x" | "overflow-y" => self.clips = Some(value.contains("hidden") || value == "clip"),
            _ => {
                if let Some(side) = flat.and_then(|side| self.flat.get_mut(side)) {
                    *side = Some(length(value).is_some_and(|(number, _)| (0.0..=1.0).contains(&number)));
                }
            }
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.gone.iter_mut().zip(other.gone).for_each(|(own, new)| *own = new.or(*own));
        self.flat.iter_mut().zip(other.flat).for_each(|(own, new)| *own = new.or(*own));
        self.invisible = other.invisible.or(self.invisible);
        self.size = other.size.or(self.size);
        self.ink = other.ink.or(self.ink);
        self.ground = other.ground.or(self.ground);
        self.clips = other.clips.or(self.clips);
    }
}

fn size(value: &str) -> Option<Size> {
    if matches!(value, "smaller" | "larger" | "inherit") {
        return Some(Size::Relative);
    }
    if value.ends_with("-small")
        || value.ends_with("-large")
        || matches!(value, "small" | "medium" | "large" | "initial")
    {
        return Some(Size::Fixed);
    }
    let (number, unit) = length(value)?;
    Some(match unit {
        _ if number == 0.0 => Size::Tiny,
        "px" | "pt" if number <= 1.5 => Size::Tiny,
        "em" | "rem" | "ex" | "ch" | "vw" | "vh" if number <= 0.1 => Size::Tiny,
        "%" if number <= 10.0 => Size::Tiny,
        "em" | "ex" | "ch" | "%" => Size::Relative,
        "px" | "pt" | "rem" | "vw" | "vh" | "mm" | "cm" | "in" | "pc" => Size::Fixed,
        // A weight of a font, or nothing known.
        _ => return None,
    })
}
