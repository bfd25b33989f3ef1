//! An answer that is longer than the window and still arrives while the terminal changes its size: each word of it is
//! in scrollback and screen once.

use proptest::prelude::*;

use crate::ai::{BlockKind, StreamEvent};
use crate::tui::term::ReflowTraits;

use super::super::over_screen::MainScreen;
use super::super::size::{ScreenSensor, adopt_size};
use super::super::transcript::keep_places;
use super::emulators::reflowing_terminal::{Emulator, ReflowingTerminal};
use super::emulators::virtual_terminal::VirtualTerminal;
use super::late_size::LateScreen;
use super::*;

/// What the words are in.
#[derive(Debug, Clone, Copy)]
enum Form {
    Paragraph,
    Thinking,
    Item,
    Quote,
    /// Lines of a paragraph, with emphasis that closes later.
    Markup,
    /// The same with clusters of several cells and code points.
    Clusters,
    /// Links whose definition comes last.
    References,
    Code,
    Table,
}

/// Where the text of an answer is, in each form.
struct Answer {
    form: Form,
    block: usize,
    n_words: usize,
}

impl Answer {
    fn begin(screen: &mut LateScreen<impl Emulator>, form: Form, block: usize) -> Self {
        let mut answer = AssistantMessage::pending(Default::default(), "acme", "m-1", Millis(0));
        answer.content.clear();
        screen.stage.agent(AgentEvent::AssistantStart(Arc::new(answer)));
        let kind = if matches!(form, Form::Thinking) { BlockKind::Thinking } else { BlockKind::Text };
        screen.stage.agent(AgentEvent::MessageUpdate(StreamEvent::BlockStart { index: 0, kind }));
        let answer = Self { form, block, n_words: 0 };
        answer.say(
            screen,
            match form {
                Form::Item => "1. one\n2. ",
                Form::Quote => "> ",
                Form::Code => "```text\n",
                Form::Table => "| a | b |\n|---|---|\n",
                Form::Paragraph | Form::Thinking | Form::Markup | Form::References | Form::Clusters => "",
            },
        );
        answer
    }

    fn say(&self, screen: &mut LateScreen<impl Emulator>, text: &str) {
        let delta = StreamEvent::Delta { index: 0, text: text.to_owned() };
        screen.stage.agent(AgentEvent::MessageUpdate(delta));
    }

    fn word(&self, n: usize) -> String {
        format!("a{:02}.{n:04}", self.block)
    }

    fn stream(&mut self, screen: &mut LateScreen<impl Emulator>, n_words: usize) {
        self.arrive(screen, n_words);
        screen.draw();
    }

    fn arrive(&mut self, screen: &mut LateScreen<impl Emulator>, n_words: usize) {
        for n in self.n_words..self.n_words + n_words {
            let word = self.word(n);
            let text = match self.form {
                Form::Paragraph | Form::Thinking | Form::Item | Form::Quote => format!("{word} "),
                Form::Markup => match n % 40 {
                    5 => format!("**{word} "),
                    17 => format!("{word}** "),
                    22 => format!("`{word}"),
                    31 => format!("` {word}\n"),
                    33 => format!("[{word}](https://example.com/{n}) "),
                    _ => format!("{word} "),
                },
                Form::References => match n % 20 {
                    6 => format!("[{word}][r] "),
                    13 => format!("{word}\n\n"),
                    _ => format!("{word} "),
                },
                Form::Clusters => {
                    const CLUSTERS: [&str; 6] = ["世界", "e\u{301}", "한글", "ก็", "、", "👍"];
                    format!("{word}{}{}", CLUSTERS[n % 6], if n % 4 == 0 { " " } else { "" })
                }
                Form::Code => format!("{word}{}", if n % 30 == 29 { "\n" } else { " " }),
                Form::Table => format!("| {word} | b |\n"),
            };
            self.say(screen, &text);
        }
        self.n_words += n_words;
    }

    fn end(self, screen: &mut LateScreen<impl Emulator>, words: &mut Vec<String>) {
        words.extend((0..self.n_words).map(|n| self.word(n)));
        if matches!(self.form, Form::References) {
            self.say(screen, "\n\n[r]: https://example.com/reference\n");
        }
        screen.stage.app.transcript.settle();
        screen.draw();
    }
}

#[derive(Debug, Clone)]
enum Step {
    Stream(usize),
    End,
    Resize(u16, u16),
    Tell,
    /// Some time in fullscreen, in which words arrive and the size changes.
    Fullscreen(usize, u16, u16),
    /// The same without a change of the size.
    Glance(usize),
    /// The same while a list is open over the main screen.
    List(usize, u16, u16),
    /// A line about the program, below the text that arrives.
    Notice,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_usize..160).prop_map(Step::Stream),
        1 => Just(Step::End),
        4 => (40_u16..120, 14_u16..46).prop_map(|(width, height)| Step::Resize(width, height)),
        2 => Just(Step::Tell),
    ];
    prop::collection::vec(step, 1..25)
}

fn steps_in_fullscreen() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1_usize..160).prop_map(Step::Stream),
        1 => Just(Step::End),
        3 => (0_usize..160, 40_u16..120, 14_u16..46)
            .prop_map(|(n_words, width, height)| Step::Fullscreen(n_words, width, height)),
        2 => (0_usize..160).prop_map(Step::Glance),
        3 => (0_usize..160, 40_u16..120, 10_u16..46)
            .prop_map(|(n_words, width, height)| Step::List(n_words, width, height)),
        1 => Just(Step::Notice),
    ];
    prop::collection::vec(step, 1..25)
}

/// Lays the transcript out as fullscreen does, while the main screen is hidden.
fn be_in_fullscreen<T: Emulator>(
    screen: &mut LateScreen<T>,
    answer: Option<&mut Answer>,
    n_words: usize,
    size: Size,
) {
    let app = &mut screen.stage.app;
    let left = screen.ui.leave(app).unwrap();
    app.transcript.on_pushed(0);
    screen.terminal.resize(size);
    screen.terminal.known = size;
    if let Some(answer) = answer {
        answer.arrive(screen, n_words);
    }
    let app = &mut screen.stage.app;
    app.transcript.layout(size.width, &app.theme, app.now);
    let cursor = screen.terminal.ask_screen().cursor.unwrap();
    screen.ui.continue_after(&mut screen.stage.app, &left, (size, cursor));
    screen.draw();
}

/// Lays the transcript out as a list does that is open over the main screen.
fn be_over<T: Emulator>(screen: &mut LateScreen<T>, answer: Option<&mut Answer>, n_words: usize, size: Size) {
    let app = &mut screen.stage.app;
    let below = MainScreen::new(app, &screen.ui.screen);
    screen.terminal.resize(size);
    screen.terminal.known = size;
    keep_places(&mut app.transcript, &below.places);
    app.transcript.layout(size.width, &app.theme, app.now);
    if let Some(answer) = answer {
        answer.arrive(screen, n_words);
    }
    let app = &mut screen.stage.app;
    app.transcript.layout(size.width, &app.theme, app.now);
    screen.ui.screen.return_to();
    adopt_size(&mut screen.ui, app, &mut screen.terminal, Some(&below.places));
    screen.ui.draw(&mut screen.stage.app).unwrap();
}

/// Runs the steps; the check gets how often each word is there.
fn run<T: Emulator>(form: Form, traits: ReflowTraits, steps: &[Step], is_right: impl Fn(usize) -> bool) {
    let mut screen = LateScreen::<T>::new(Size::new(90, 30), traits);
    let (mut words, mut answer, mut n_answers) = (Vec::new(), None::<Answer>, 0);
    for step in steps {
        match *step {
            Step::Stream(n_words) => {
                let answer = answer.get_or_insert_with(|| {
                    n_answers += 1;
                    Answer::begin(&mut screen, form, n_answers)
                });
                answer.stream(&mut screen, n_words);
            }
            Step::End => {
                if let Some(answer) = answer.take() {
                    answer.end(&mut screen, &mut words);
                }
            }
            Step::Resize(width, height) => screen.terminal.resize(Size::new(width, height)),
            Step::Tell => {
                screen.terminal.known = screen.terminal.size;
                screen.follow_size();
            }
            Step::List(n_words, width, height) => {
                be_over(&mut screen, answer.as_mut(), n_words, Size::new(width, height));
            }
            Step::Notice => {
                screen
                    .stage
                    .app
                    .transcript
                    .notice(crate::session::NoticeLevel::Warning, "a warning of two rows at many widths");
                screen.draw();
            }
            Step::Glance(n_words) => {
                let size = screen.terminal.size;
                be_in_fullscreen(&mut screen, answer.as_mut(), n_words, size);
            }
            Step::Fullscreen(n_words, width, height) => {
                be_in_fullscreen(&mut screen, answer.as_mut(), n_words, Size::new(width, height));
            }
        }
    }
    screen.terminal.known = screen.terminal.size;
    screen.follow_size();
    if let Some(answer) = answer {
        answer.end(&mut screen, &mut words);
    }
    // Terminals that cut show the whole of their rows again.
    screen.terminal.resize(Size::new(200, 40));
    screen.check(&is_right);
    let (scrollback, rows) = screen.terminal.terminal.0.borrow_mut().lines();
    let text = [scrollback, rows].concat().join("\n");
    let wrong: Vec<_> = words
        .iter()
        .map(|word| (word, text.matches(word.as_str()).count()))
        .filter(|(_, count)| !is_right(*count))
        .collect();
    assert!(wrong.is_empty(), "{form:?}: how often words are there: {wrong:?} in {text}");
    if matches!(form, Form::Table) {
        return;
    }
    let order: Vec<usize> = words.iter().filter_map(|word| text.find(word.as_str())).collect();
    assert!(order.is_sorted(), "{form:?}: out of order: {text}");
}

/// A dock that takes most of a low screen, below a notice that came during the answer.
#[test]
fn text_that_arrives_above_a_notice_while_the_window_is_low_is_there_once() {
    for n_words in [10, 20, 30] {
        let mut screen = LateScreen::<ReflowingTerminal>::new(Size::new(80, 24), ReflowTraits::of("tmux"));
        let steering = (0..3).map(|n| format!("message {n}")).collect();
        let queue = crate::session::QueueView { steering, follow_up: Vec::new() };
        screen.stage.session(|session| session.queue = queue.into());
        let mut answer = Answer::begin(&mut screen, Form::Paragraph, 1);
        answer.stream(&mut screen, 12);
        screen
            .stage
            .app
            .transcript
            .notice(crate::session::NoticeLevel::Info, "A notice of some words that wrap.");
        screen.draw();
        be_over(&mut screen, Some(&mut answer), n_words, Size::new(40, 12));
        for _ in 0..20 {
            answer.stream(&mut screen, 1);
        }
        screen.terminal.resize(Size::new(80, 24));
        screen.terminal.known = screen.terminal.size;
        screen.follow_size();
        let mut words = Vec::new();
        answer.end(&mut screen, &mut words);
        let (scrollback, rows) = screen.terminal.terminal.0.borrow_mut().lines();
        let text = [scrollback, rows].concat().join("\n");
        let wrong: Vec<_> = words.iter().filter(|word| text.matches(word.as_str()).count() != 1).collect();
        assert!(wrong.is_empty(), "{n_words}: {wrong:?} in {text}");
    }
}

/// Until the line below it, the head of a table could be a paragraph, of which rows leave the screen one by one.
#[test]
fn table_whose_head_is_longer_than_the_window_is_one() {
    for container in ["", "> ", "- "] {
        let mut screen = LateScreen::<ReflowingTerminal>::new(Size::new(40, 15), ReflowTraits::of("tmux"));
        let answer = Answer::begin(&mut screen, Form::Paragraph, 1);
        let row = |cell: &dyn Fn(usize) -> String| {
            let cells: Vec<String> = (0..40).map(cell).collect();
            format!("|{}|\n", cells.join("|"))
        };
        let rows = [
            "text\n\n".to_owned(),
            container.to_owned() + &row(&|n| format!("c{n}")),
            container.replace('-', " ") + &row(&|_| "---".to_owned()),
            container.replace('-', " ") + &row(&|n| format!("v{n}")),
            "\nend".to_owned(),
        ];
        for c in rows.concat().chars() {
            answer.say(&mut screen, &c.to_string());
            screen.draw();
        }
        answer.end(&mut screen, &mut Vec::new());
        let (scrollback, rows) = screen.terminal.terminal.0.borrow_mut().lines();
        let text = [scrollback, rows].concat();
        let is_row =
            |line: &&String, n: usize| line.trim_matches([' ', '│', '•', '-']) == format!("c{n}: v{n}");
        let wrong: Vec<usize> =
            (0..40).filter(|n| text.iter().filter(|line| is_row(line, *n)).count() != 1).collect();
        assert!(wrong.is_empty(), "{container:?}: {wrong:?} in {text:#?}");
        assert!(!text.iter().any(|line| line.contains("|c0")), "{text:#?}");
    }
}

/// Nothing moved the rows of the main screen, which are the window's again.
#[test]
fn fullscreen_without_a_change_of_the_size_leaves_no_trace() {
    let shown = |in_fullscreen: bool, n_blocks: usize| {
        let mut screen = LateScreen::<ReflowingTerminal>::new(Size::new(100, 40), ReflowTraits::of("tmux"));
        (0..n_blocks).for_each(|_| screen.append(40));
        if in_fullscreen {
            be_in_fullscreen(&mut screen, None, 0, Size::new(100, 40));
        }
        for size in [Size::new(60, 40), Size::new(80, 30)] {
            screen.terminal.resize(size);
            screen.terminal.known = size;
            screen.follow_size();
        }
        screen.terminal.terminal.0.borrow_mut().lines()
    };
    for n_blocks in [1, 3, 20] {
        assert_eq!(shown(true, n_blocks), shown(false, n_blocks), "{n_blocks}");
    }
}

fn forms() -> impl Strategy<Value = Form> {
    prop_oneof![
        Just(Form::Paragraph),
        Just(Form::Thinking),
        Just(Form::Item),
        Just(Form::Quote),
        Just(Form::Code),
        Just(Form::Clusters)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn each_word_of_a_long_text_that_arrives_is_there_once(form in forms(), steps in steps()) {
        run::<ReflowingTerminal>(form, ReflowTraits::of("tmux"), &steps, |count| count == 1);
    }

    #[test]
    fn each_word_of_a_long_text_is_there_once_after_fullscreen(form in forms(), steps in steps_in_fullscreen()) {
        run::<ReflowingTerminal>(form, ReflowTraits::of("tmux"), &steps, |count| count == 1);
    }

    /// It cuts rows. Those that are drawn again begin with a whole row, of which a part may be in the scrollback.
    #[test]
    fn each_word_of_a_long_text_is_there_after_fullscreen_in_a_narrower_xterm(form in forms(), steps in steps_in_fullscreen()) {
        let same_height = |step: Step| match step {
            Step::Fullscreen(n_words, width, _) | Step::List(n_words, width, _) => Step::Fullscreen(n_words, width, 30),
            other => other,
        };
        let steps: Vec<Step> = steps.into_iter().map(same_height).collect();
        run::<VirtualTerminal>(form, ReflowTraits::of("xterm"), &steps, |count| count >= 1);
    }

    #[test]
    fn text_with_markup_is_there_once_after_fullscreen(steps in steps_in_fullscreen()) {
        run::<ReflowingTerminal>(Form::Markup, ReflowTraits::of("tmux"), &steps, |count| count == 1);
    }

    #[test]
    fn text_that_arrives_with_markup_is_there_once(steps in steps()) {
        run::<ReflowingTerminal>(Form::Markup, ReflowTraits::of("tmux"), &steps, |count| count == 1);
    }

    #[test]
    fn links_that_wait_for_their_definition_lose_no_word(steps in steps()) {
        run::<ReflowingTerminal>(Form::References, ReflowTraits::of("tmux"), &steps, |count| count >= 1);
    }

    #[test]
    fn table_that_arrives_loses_no_word(steps in steps()) {
        run::<ReflowingTerminal>(Form::Table, ReflowTraits::of("tmux"), &steps, |count| count >= 1);
    }
}
