//! Drawings.

use super::axis::{Range, Scale, label, log_label, log_ticks, ticks};
use super::panel::free_place;
use super::*;

#[test]
fn any_course_can_be_drawn() {
    let courses =
        [vec![], vec![(1.0, 2.0)], vec![(0.0, 2.0), (2.0, f64::INFINITY), (3.0, 0.0)], vec![(1.0, f64::NAN)]];
    for points in courses {
        for scale in [Scale::Linear, Scale::Log, Scale::Auto] {
            let line = Line { band: vec![(1.0, 0.5, 2.0)], ..Line::new(Style::kind(0), points.clone()) };
            let (x, y) = (Axis { label: "x", scale }, Axis { label: "y", scale });
            let panel = Panel { level: Some((2.0, "c")), ..Panel::new("a < b", x, y, vec![line]) };
            let chart = Chart {
                title: "title".into(),
                subtitle: "word ".repeat(100),
                caution: Some("quick".into()),
                legend: vec![("a & b".into(), Style::step(2).dashed(1))],
                panels: vec![panel.clone(), panel],
                columns: 2,
                frame: (300.0, 200.0),
            };
            let svg = chart.draw();
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}

#[test]
fn long_text_is_broken_at_spaces() {
    assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    assert!(wrap("", 7).is_empty());
}

#[test]
fn ticks_are_round_and_inside() {
    assert_eq!(ticks(0.3, 4.2, 5), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(log_ticks(0.15, 6.0, 5), [0.2, 0.5, 1.0, 2.0, 5.0]);
    assert_eq!(log_ticks(1e-6, 1e6, 5), [1e-6, 1e-3, 1.0, 1e3, 1e6]);
    assert_eq!(label(0.5, &[0.0, 0.5, 1.0]), "0.5");
    assert_eq!((log_label(0.2), log_label(1e-6)), ("0.2".to_string(), "1e-6".to_string()));
}

#[test]
fn ranges_of_one_value_or_none() {
    assert!(Range::of([f64::NAN].into_iter(), Scale::Linear, 0.1).is_none());
    assert!(Range::of([-1.0, 0.0].into_iter(), Scale::Log, 0.1).is_none());
    let one = Range::of([2.0].into_iter(), Scale::Linear, 0.0).unwrap();
    assert_eq!(one.place(2.0), Some(0.5));
    assert!(!one.ticks(5).is_empty());
}

#[test]
fn the_name_of_a_level_is_not_written_over_a_line() {
    // Where a line rises from the left end of the level, the name goes under it; where another falls from there too, to
    // the right.
    let rising = vec![(0.0, 100.0), (60.0, 92.0), (300.0, 20.0)];
    let falling = vec![(0.0, 100.0), (60.0, 108.0), (300.0, 180.0)];
    let place = |courses: &[Vec<(f64, f64)>]| free_place(courses, (300.0, 200.0), 100.0, 90.0);
    let (x, y) = place(std::slice::from_ref(&rising));
    assert!(x == 4.0 && y > 100.0 + TEXT, "{x} {y}");
    assert!(place(&[rising, falling]).0 > 200.0);
    assert_eq!(free_place(&[], (300.0, 200.0), 100.0, 90.0), (4.0, 95.0));
    // Never outside the frame.
    assert!(free_place(&[], (300.0, 200.0), 3.0, 90.0).1 > 3.0);
}

#[test]
fn the_dot_is_on_the_marked_point() {
    let mut line = Line::new(Style::kind(0), vec![(1.0, 5.0), (2.0, 9.0), (3.0, 7.0)]);
    line.mark = Some(2.0);
    let svg = line.draw(&|x, y| Some((10.0 * x, y))).into_string();
    assert!(svg.contains("cx=\"20.00\" cy=\"9.00\""), "{svg}");
}
