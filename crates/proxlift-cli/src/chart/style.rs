//! How lines look: colours that the colour-blind can tell apart, in light and in dark.

/// Colour and stroke of a line.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// `k` for one of several kinds, `s` for one of several steps of a quantity, and which.
    colour: (char, usize),
    /// Unbroken, dashed or dotted.
    stroke: usize,
}

impl Style {
    /// An unbroken line for one of several things without an order.
    pub fn kind(number: usize) -> Self {
        Self { colour: ('k', number % KINDS.len()), stroke: 0 }
    }

    /// An unbroken line for one of several steps of a quantity, from the least.
    pub fn step(number: usize) -> Self {
        Self { colour: ('s', number % STEPS.len()), stroke: 0 }
    }

    /// The same colour with the stroke for the `number`-th of several.
    #[must_use]
    pub fn dashed(self, number: usize) -> Self {
        Self { stroke: number % 3, ..self }
    }

    /// The class of its colour.
    pub fn class(self) -> String {
        format!("{}{}", self.colour.0, self.colour.1)
    }

    /// The dashes of its stroke, if there are any.
    pub fn dashes(self) -> Option<&'static str> {
        [None, Some("8 4"), Some("2 4")][self.stroke]
    }
}

/// Light and dark; after Okabe and Ito.
const KINDS: [(&str, &str); 6] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8c42"),
    ("#009e73", "#2fc99a"),
    ("#b3589a", "#e39ccb"),
    ("#8a7000", "#e0c341"),
    ("#666666", "#aaaaaa"),
];

/// After viridis, bent to be seen on white and on black.
const STEPS: [(&str, &str); 7] = [
    ("#440154", "#b48ee0"),
    ("#443a83", "#8f8fe8"),
    ("#31688e", "#6ca6d9"),
    ("#21908c", "#43c0bb"),
    ("#2f9e63", "#5fd99a"),
    ("#7fa51f", "#b5de55"),
    ("#c79a00", "#fde725"),
];

/// The style sheet of a drawing.
pub fn sheet() -> String {
    let colours = |dark: bool| {
        let pick = |pair: &(&'static str, &'static str)| if dark { pair.1 } else { pair.0 };
        let rule = |name: String, c: &str| format!(".chart .{name}{{stroke:{c};color:{c}}}");
        let kinds = KINDS.iter().enumerate().map(|(i, pair)| rule(format!("k{i}"), pick(pair)));
        kinds
            .chain(STEPS.iter().enumerate().map(|(i, pair)| rule(format!("s{i}"), pick(pair))))
            .collect::<String>()
    };
    format!(
        ".chart .paper{{fill:#fff}}.chart text{{fill:#333}}.chart .faint{{fill:#666}}.chart .grid{{stroke:#e4e4e4}}\
         .chart text[paint-order]{{stroke:#fff;stroke-width:4}}.chart .frame{{stroke:#333;fill:none}}.chart .level{{stroke:#888}}.chart .warn{{fill:#b45309}}{}\
         @media (prefers-color-scheme: dark){{.chart .paper{{fill:#1b1e24}}.chart text{{fill:#ddd}}\
         .chart .faint{{fill:#aaa}}.chart text[paint-order]{{stroke:#1b1e24}}.chart .grid{{stroke:#363b45}}.chart .frame{{stroke:#bbb}}\
         .chart .level{{stroke:#999}}.chart .warn{{fill:#fbbf24}}{}}}",
        colours(false),
        colours(true)
    )
}
