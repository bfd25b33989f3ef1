//! What diagrams look like, and that no source takes long.

use proptest::prelude::*;

use super::super::super::text::width;
use super::*;

fn text(rows: &[DrawnRow]) -> String {
    let line = |row: &DrawnRow| row.iter().map(|(_, text)| text.as_str()).collect::<String>();
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn drawn(source: &str, room: u16) -> String {
    match draw(source, room) {
        Ok(rows) => text(&rows),
        Err(reason) => panic!("{reason:?}: {source}"),
    }
}

#[track_caller]
fn check_undrawn(source: &str, reason: Undrawn) {
    assert_eq!(draw(source, 80).map(|rows| text(&rows)), Err(reason), "{source}");
}

const DECISION: &str = "flowchart TD
    A[Start] --> B{Is it valid?}
    B -->|yes| C[Process the request]
    B -->|no| D[Return error]
    C --> E[(Database)]
    C -.-> F([Cache])
    E ==> G((Done))
    D --> A";

#[test]
fn flowcharts_flow_down() {
    insta::assert_snapshot!(drawn(DECISION, 80), @"
                                ┌───────┐
                                │ Start │
                                └┬──────┘
                                 │     ▲
                                 │     └┐
                                 ▼      │
                     ╱──────────────╲   │
                     < Is it valid? >   │
                     ╲───────┬──────╱   │
                       ┌─────┴────┐     │
                      yes        no     │
                       ▼          ▼     │
      ┌─────────────────────┐   ┌───────┴──────┐
      │ Process the request │   │ Return error │
      └───┬────────────┬────┘   └──────────────┘
          │            ┆
          ▼            ▼
    ╭──────────╮   ╭───────╮
    ├──────────┤   ( Cache )
    │ Database │   ╰───────╯
    ╰─────┬────╯
          ┃
          ▼
      ╭──────╮
      ( Done )
      ╰──────╯
    ");
}

#[test]
fn flowcharts_flow_sideways() {
    insta::assert_snapshot!(
        drawn("graph LR\n A[世界 client] -->|GET 请求| B(API)\n B --> C & D --> E\n E --> A", 80),
        @"
                                                    ┌───┐
                                                 ┌─►│ C ├─┐
                                                 │  └───┘ │
                                         ╭─────╮ │        │    ┌───┐
        ┌─────────────┐               ┌─►│ API ├─┤  ┌───┐ ├───►│ E │
        │ 世界 client ├──── GET 请求 ─┘  ╰─────╯ └─►│ D ├─┘ ┌──┤   │
        │             │◄─┐                          └───┘   │  └───┘
        └─────────────┘  │                                  │
                         └──────────────────────────────────┘
        "
    );
    insta::assert_snapshot!(drawn("graph RL\n A --> B -->|x| C\n A --> C", 80), @"
                  ┌───┐
    ┌───┐  ┌─ x ──┤ B │◄─┐
    │ C │◄─┤      └───┘  │ ┌───┐
    └───┘  │             ├─┤ A │
           └─────────────┘ └───┘
    ");
}

#[test]
fn flowcharts_flow_up() {
    insta::assert_snapshot!(
        drawn("graph BT\n A --> B{{Hex}}\n A -.->|maybe| C[/Slanted/]\n B & C ==> D[[Sub]]\n D --> E>Flag]", 80),
        @"
             ┌──────┐
             > Flag │
             └──────┘
                 ▲
             ┌───┴───┐
             ││ Sub ││
             └───────┘
                 ▲
           ┏━━━━━┻━━━━━┓
        ╱──┴──╲   ╱────┴────╱
        │ Hex │   │ Slanted │
        ╲─────╱   ╱─────────╱
           ▲        ▲
           └──┐     ┆
              │   maybe
              └─┐ ┌┄┘
               ┌┴─┴┐
               │ A │
               └───┘
        "
    );
}

#[test]
fn parallel_lines_cycles_and_heads_are_told_apart() {
    insta::assert_snapshot!(
        drawn("graph LR\nA -->|one| B\nA -->|two| B\nB -->|back| A\nB -->|again| B\nB <--> C\nB x--x D\nB o--o E\nB --- F", 80),
        @"
                                                    ┌───┐
                                             ┌─────►│ C │
                                             │      └───┘
                                             │
                               ┌──────────┐  │      ┌───┐
        ┌───┐    ┌─ one ──┐    │          │◄─┘   ┌─×│ D │
        │ A ├────┤        ├───►│    B     │×─────┘  └───┘
        │   │◄─┐ └─ two ──┘    │          │o───┐
        └───┘  │            ┌──┤          ├──┐ │    ┌───┐
               └─── back ───┘  └┬─────────┘  │ └───o│ E │
                                │  ▲         │      └───┘
                                └──┘ again   │
                                             │      ┌───┐
                                             └──────┤ F │
                                                    └───┘
        "
    );
    insta::assert_snapshot!(drawn("graph TD\n A --> A\n A -->|retry| A\n A --> B --> A", 80), @"
    ┌───┐
    │ A ├─┐ retry
    │   │◄┘
    └┬──┘
     │ ▲
     ▼ │
    ┌──┴┐
    │ B │
    └───┘
    ");
}

#[test]
fn lines_that_cross_are_not_joined() {
    insta::assert_snapshot!(drawn("graph TD\n A & B --> C & D\n A --> E\n E & C & D --> F\n A & F --> G", 80), @"
          ┌───┐     ┌───┐
          │ A │     │ B │
          └─┬─┘     └─┬─┘
            │      ┌──┴────┐
    ┌─────┬─┴────┬─│─────┐ │
    │     ▼      ▼ ▼     ▼ ▼
    │   ┌───┐   ┌───┐   ┌───┐
    │   │ E │   │ C │   │ D │
    │   └─┬─┘   └─┬─┘   └─┬─┘
    └┐    └─────┬─┴───────┘
     │          ▼
     │        ┌───┐
     │        │ F │
     │        └─┬─┘
     └───┬──────┘
         ▼
       ┌───┐
       │ G │
       └───┘
    ");
}

#[test]
fn subgraphs_are_frames_around_their_nodes() {
    let source = "flowchart LR
        subgraph Client
            A[Browser] --> B[SPA]
        end
        subgraph srv [Server 服务器]
            C[API] --> D[(DB)]
            C --> E[Queue]
        end
        B -->|HTTPS| C
        E --> F[Worker]
        F --> D";
    insta::assert_snapshot!(drawn(source, 100), @"
                                         ┌─ Server 服务器 ──────────┐
                                         │               ╭────╮     │
                                         │               ├────┤     │
    ┌─ Client ───────────────┐           │           ┌──►│ DB │◄────│─┐    ┌────────┐
    │ ┌─────────┐  ┌─────┐   │           │   ┌─────┐ │   ╰────╯     │ └────┤ Worker │
    │ │ Browser ├─►│ SPA ├───│── HTTPS ──│──►│ API ├─┤              │   ┌─►│        │
    │ └─────────┘  └─────┘   │           │   └─────┘ │  ┌───────┐   │   │  └────────┘
    └────────────────────────┘           │           └─►│ Queue ├───│───┘
                                         │              └───────┘   │
                                         └──────────────────────────┘
    ");
    let nested =
        "graph TD\n x --> one\n subgraph one\n a --> b\n subgraph two\n b --> c\n end\n end\n c --> y";
    insta::assert_snapshot!(drawn(nested, 80), @"
        ┌───┐
        │ x │
        └─┬─┘
          ▼
    ┌─ one ─────┐
    │           │
    │   ┌───┐   │
    │   │ a │   │
    │   └─┬─┘   │
    │     ▼     │
    │   ┌───┐   │
    │   │ b │   │
    │   └─┬─┘   │
    │     │     │
    │ ┌─ two ─┐ │
    │ │   ▼   │ │
    │ │ ┌───┐ │ │
    │ │ │ c │ │ │
    │ │ └─┬─┘ │ │
    │ │   │   │ │
    │ └───│───┘ │
    │     │     │
    └─────│─────┘
          ▼
        ┌───┐
        │ y │
        └───┘
    ");
}

#[test]
fn wide_diagrams_wrap_their_texts_and_then_turn() {
    let source =
        "graph LR\n A[Receives the request of a client] --> B[Checks who has sent it] --> C[Answers]";
    insta::assert_snapshot!(drawn(source, 90), @"
    ┌──────────────────────────────────┐  ┌────────────────────────┐  ┌─────────┐
    │ Receives the request of a client ├─►│ Checks who has sent it ├─►│ Answers │
    └──────────────────────────────────┘  └────────────────────────┘  └─────────┘
    ");
    insta::assert_snapshot!(drawn(source, 54), @"
    ┌──────────────┐  ┌─────────────┐
    │ Receives the │  │ Checks who  │  ┌─────────┐
    │ request of a ├─►│ has sent it ├─►│ Answers │
    │    client    │  └─────────────┘  └─────────┘
    └──────────────┘
    ");
    insta::assert_snapshot!(drawn(source, 30), @"
    ┌──────────────────────┐
    │ Receives the request │
    │     of a client      │
    └───────────┬──────────┘
                ▼
     ┌─────────────────────┐
     │ Checks who has sent │
     │         it          │
     └──────────┬──────────┘
                ▼
           ┌─────────┐
           │ Answers │
           └─────────┘
    ");
    assert_eq!(draw(source, 10), Err(Undrawn::TooWide(6)));
}

#[test]
fn states() {
    let source = "stateDiagram-v2
        [*] --> Idle
        Idle --> Running: start
        Running --> Idle: stop
        Running --> Failed: error
        state Failed {
            [*] --> Waiting
            Waiting --> Retry: after 5 s
            Retry --> Waiting
        }
        Running --> [*]
        note right of Idle : nothing to do";
    insta::assert_snapshot!(drawn(source, 80), @"
                         ●
                         ▼
                     ╭──────╮
                     │ Idle │
                     ╰┬────┬╯
                      │  ▲ ┆
                   ┌──┘  │ └┄┄┄┐
                   │     └┐    ┆
                 start  stop   ┆
                   │    ┌─┘    ┆
                   ▼    │      ┆
               ╭────────┴╮   ┌─┴─────────────┐
               │ Running │   │ nothing to do │
               ╰────┬────╯   └───────────────┘
                ┌───┴─┐
              error   │
             ┌──┘     └──┐
             ▼           │
    ┌─ Failed ───────┐   │
    │                │   │
    │         ●      │   │
    │         ▼      │   │
    │    ╭─────────╮ │   │
    │    │ Waiting │ │   │
    │    ╰┬────────╯ │   ▼
    │     │      ▲   │   ◉
    │ after 5 s  │   │
    │     │     ┌┘   │
    │     ▼     │    │
    │    ╭──────┴╮   │
    │    │ Retry │   │
    │    ╰───────╯   │
    └────────────────┘
    ");
    insta::assert_snapshot!(
        drawn("stateDiagram\n direction LR\n state f <<fork>>\n [*] --> f\n f --> a\n f --> b : text\n a : first", 80),
        @"
                         ╭───────╮
                      ┌─►│ first │
           ┃ ┌────────┘  ╰───────╯
        ●─►┃─┤
           ┃ └─ text ─┐    ╭───╮
                      └───►│ b │
                           ╰───╯
        "
    );
}

#[test]
fn classes() {
    let source = "classDiagram
        Animal <|-- Duck
        Animal <|-- Fish
        Animal : +int age
        Animal: +isMammal() bool
        class Duck{
            +String beakColor
            +swim()
        }
        class List~T~ {
            <<interface>>
            +add(T item)
        }
        Duck \"1\" *-- \"many\" Egg : lays
        Fish ..> List~T~ : uses";
    insta::assert_snapshot!(drawn(source, 80), @"
             ┌──────────────────┐
             │      Animal      │
             ├──────────────────┤
             │ +int age         │
             ├──────────────────┤
             │ +isMammal() bool │
             └──────────────────┘
                       △
              ┌────────┴────────┐
    ┌─────────┴─────────┐       │
    │       Duck        │       │
    ├───────────────────┤   ┌───┴──┐
    │ +String beakColor │   │ Fish │
    ├───────────────────┤   └───┬──┘
    │ +swim()           │       ┆
    └───────────────────┘       ┆
              ◆                 ┆
              │                 ┆
              1                 ┆
            lays              uses
            many                ┆
              │                 ┆
              │                 ▼
              │         ┌──────────────┐
           ┌──┴──┐      │ «interface»  │
           │ Egg │      │   List<T>    │
           └─────┘      ├──────────────┤
                        │ +add(T item) │
                        └──────────────┘
    ");
}

#[test]
fn entities() {
    let source = "erDiagram
        CUSTOMER ||--o{ ORDER : places
        ORDER ||--|{ LINE-ITEM : contains
        CUSTOMER }|..|{ ADDRESS : uses
        CUSTOMER {
            string name PK
            int number \"of the contract\"
        }";
    insta::assert_snapshot!(drawn(source, 80), @"
    ┌────────────────────────────┐
    │          CUSTOMER          │
    ├────────────────────────────┤
    │ string name PK             │
    │ int number of the contract │
    └───────────┬──────┬─────────┘
                │      ┆
                1    1..n
             places  uses
              0..n   1..n
                │      ┆
         ┌──────┴┐   ┌─┴───────┐
         │ ORDER │   │ ADDRESS │
         └───┬───┘   └─────────┘
             │
             1
         contains
           1..n
             │
       ┌─────┴─────┐
       │ LINE-ITEM │
       └───────────┘
    ");
}

const SEQUENCE: &str = "sequenceDiagram
    autonumber
    actor U as User 用户
    participant A as API
    participant D as Database
    U->>+A: POST /orders<br/>with a body
    loop every item
        A->>D: insert
        alt stored
            D-->>A: ok
        else failed
            D--xA: error
            A->>A: retry
        end
    end
    Note over A,D: one transaction
    Note right of D: disk
    A-->>-U: 201 created
    U-)D: async";

#[test]
fn sequences() {
    insta::assert_snapshot!(drawn(SEQUENCE, 80), @"
    ┌───────────┐        ┌─────┐          ┌──────────┐
    │ User 用户 │        │ API │          │ Database │
    └─────┬─────┘        └──┬──┘          └─────┬────┘
          │ 1. POST /orders │                   │
          │   with a body   │                   │
          ├────────────────►│                   │
          │            ┌─ loop [every item] ────│────┐
          │            │    │     2. insert     │    │
          │            │    ├──────────────────►│    │
          │            │ ┌─ alt [stored] ───────│──┐ │
          │            │ │  │       3. ok       │  │ │
          │            │ │  │◄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┤  │ │
          │            │ ├┄ [failed] ┄┄┄┄┄┄┄┄┄┄┄│┄┄┤ │
          │            │ │  │     4. error      │  │ │
          │            │ │  │×┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┤  │ │
          │            │ │  ├──┐ 5. retry       │  │ │
          │            │ │  │◄─┘                │  │ │
          │            │ └──│───────────────────│──┘ │
          │            └────│───────────────────│────┘
          │               ┌───────────────────────┐
          │               │    one transaction    │
          │               └───────────────────────┘
          │                 │                   │ ┌──────┐
          │                 │                   │ │ disk │
          │                 │                   │ └──────┘
          │ 6. 201 created  │                   │
          │◄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┤                   │
          │              7. async               │
          ├─────────────────│──────────────────>│
          │                 │                   │
    ");
}

#[test]
fn pies_are_bars() {
    insta::assert_snapshot!(drawn("pie showData title Pets\n \"Dogs\" : 386\n \"Cats 猫\" : 85.9\n \"Rats\" : 15", 60), @"
    Pets

    Dogs     █████████████████████████████████████   79.3%  386
    Cats 猫  ████████▎                               17.6%  85.9
    Rats     █▌                                       3.1%  15
    ");
}

#[test]
fn colours_links_and_comments_are_left_out() {
    let source = "---\nconfig:\n  theme: x\n---\n%%{init: {}}%%\ngraph TD; A:::red --> B; %% no\n classDef red fill:#f00;\nclick A href \"x\"";
    assert_eq!(drawn(source.replace(" %% no", "").as_str(), 80), drawn("graph TD\nA-->B", 80));
}

/// Each statement is drawn in full, or the diagram is not drawn.
#[test]
fn words_of_styles_are_names_where_a_line_follows() {
    const WORDS: [&str; 33] = [
        "style",
        "classDef",
        "class",
        "linkStyle",
        "click",
        "callback",
        "link",
        "links",
        "cssClass",
        "accTitle",
        "accDescr",
        "direction",
        "hide",
        "show",
        "scale",
        "note",
        "state",
        "end",
        "subgraph",
        "namespace",
        "properties",
        "details",
        "activate",
        "deactivate",
        "destroy",
        "create",
        "autonumber",
        "title",
        "box",
        "rect",
        "participant",
        "loop",
        "else",
    ];
    for word in WORDS {
        for (header, to, from) in [
            ("graph LR", "{} --> other", "other x--x {}"),
            ("graph TD", "{} & third ==> other", "{}-->other"),
            ("stateDiagram", "{} --> other", "other --> {} : toggle"),
            ("classDiagram", "{} <|-- other", "other : {}"),
            ("classDiagram", "{} \"1\" --> \"n\" other", "other ..> {}"),
            ("erDiagram", "{} ||--o{ other : has", "other }|..|| {} : is"),
            ("sequenceDiagram", "{} ->> other: hello", "other-->>{}: bye"),
        ] {
            for statement in [to, from] {
                let source = format!("{header}\n{}", statement.replacen("{}", word, 1));
                let Ok(rows) = draw(&source, 80) else { continue };
                let drawing = text(&rows);
                assert!(drawing.contains(word) && drawing.contains("other"), "{source}\n{drawing}");
            }
        }
    }
    for source in [
        "stateDiagram\n show --> hide\n hide --> show : toggle",
        "erDiagram\n teacher ||--o{ class : teaches\n class ||--o{ student : has",
        "graph LR\n direction --> B --> click\n click --> C",
        "sequenceDiagram\n link ->> B: hello",
    ] {
        let drawing = drawn(source, 80);
        let names = source.lines().skip(1).flat_map(|line| line.split(|c: char| !c.is_alphabetic()));
        for word in names.filter(|name| name.len() > 1) {
            assert!(drawing.contains(word), "{word}: {drawing}");
        }
    }
}

#[test]
fn colours_of_a_name_do_not_hide_the_text_after_it() {
    for (styled, plain) in [
        ("classDiagram\nA --> B:::hot\nC:::hot <|-- B : x", "classDiagram\nA --> B\nC <|-- B : x"),
        ("classDiagram\nclass A:::hot {\n+int x\n}\nB:::hot", "classDiagram\nclass A {\n+int x\n}\nclass B"),
        (
            "stateDiagram\na:::hot --> b:::cold : text\n[*] --> a:::hot",
            "stateDiagram\na --> b : text\n[*] --> a",
        ),
        ("erDiagram\nA:::hot ||--o{ B:::cold : has", "erDiagram\nA ||--o{ B : has"),
    ] {
        assert_eq!(drawn(styled, 80), drawn(plain, 80));
    }
    check_undrawn("classDiagram\nclass A:::hot[\"text\"]", Undrawn::Syntax);
}

#[test]
fn a_group_shows_the_text_of_its_name_or_is_not_drawn() {
    for source in [
        "stateDiagram\nstate Failed {\na --> b\n}\nFailed : with a text",
        "stateDiagram\nFailed : with a text\nstate Failed {\na --> b\n}",
        "stateDiagram\nx --> Failed\nstate \"with a text\" as Failed {\na --> b\n}",
        "stateDiagram\nstate Failed {\na --> b\n}\nstate \"with a text\" as Failed",
        "graph TD\nG[with a text] --> x\nsubgraph G\na --> b\nend",
    ] {
        let drawing = drawn(source, 80);
        assert!(drawing.contains("─ with a text ─") && !drawing.contains("Failed"), "{drawing}");
    }
    for source in [
        "stateDiagram\nstate Failed {\na --> b\n}\nFailed : one\nFailed : two",
        "stateDiagram\nFailed : one\nstate \"two\" as Failed {\na --> b\n}",
        "stateDiagram\nstate Failed {\na --> b\n}\nstate Failed <<choice>>",
        "graph TD\nsubgraph G\na --> b\nend\nG[text] --> x",
        "graph TD\nG[one] --> x\nsubgraph G[two]\na --> b\nend",
    ] {
        check_undrawn(source, Undrawn::Syntax);
    }
    let both = drawn("classDiagram\nnamespace A {\nclass A\n}\nA --> B", 80);
    assert_eq!(both.matches('A').count(), 2, "{both}");
}

#[test]
fn a_message_to_oneself_has_both_its_heads() {
    insta::assert_snapshot!(drawn("sequenceDiagram\nA<<->>A: both\nA->>A: one", 40), @"
    ┌───┐
    │ A │
    └─┬─┘
      │◄─┐ both
      │◄─┘
      ├──┐ one
      │◄─┘
      │
    ");
}

#[test]
fn numbers_at_both_ends_of_a_relation_are_drawn() {
    insta::assert_snapshot!(drawn("classDiagram\nOrder \"0..*\" --> \"0..1\" Customer : is -- by", 40), @"
      ┌───────┐
      │ Order │
      └───┬───┘
          │
        0..*
      is -- by
        0..1
          ▼
    ┌──────────┐
    │ Customer │
    └──────────┘
    ");
}

#[test]
fn comments_directives_and_entities_end_where_they_should() {
    let plain = drawn("graph LR\nA --> B", 80);
    for source in [
        "%%{init: {\n  'theme': 'dark'\n}}%%\ngraph LR\nA --> B",
        "%%{init: {}}%% graph LR\n%% a comment\n  %%{\nwrap\n}%%\nA --> B",
        "graph LR\naccDescr {\n one\n two --> three\n}\nA --> B",
    ] {
        assert_eq!(drawn(source, 80), plain, "{source}");
    }
    check_undrawn("%%{init: {\ngraph LR\nA --> B", Undrawn::Syntax);
    assert_eq!(
        drawn("graph LR\nA --> B & C&D; C --> E", 80),
        drawn("graph LR\nA --> B & C & D\nC --> E", 80)
    );
    let escaped = drawn("sequenceDiagram\nA->>B: a#59;b &amp; #quot;c#quot;; B->>A: #fff; A->>B: d", 80);
    for label in ["a;b & \"c\"", "#fff", "d"] {
        assert!(escaped.contains(&format!(" {label} ")), "{escaped}");
    }
}

#[test]
fn nothing_on_the_line_of_the_kind_is_lost() {
    for (source, lines) in [
        ("sequenceDiagram A->>B: x", "sequenceDiagram\nA->>B: x"),
        ("erDiagram A ||--o{ B : x", "erDiagram\nA ||--o{ B : x"),
        ("classDiagram A <|-- B", "classDiagram\nA <|-- B"),
        ("stateDiagram-v2 a --> b", "stateDiagram-v2\na --> b"),
        ("graph TD; A-->B", "graph TD\nA --> B"),
    ] {
        assert_eq!(drawn(source, 80), drawn(lines, 80));
    }
    check_undrawn("graph TD A --> B", Undrawn::Syntax);
    check_undrawn("pie chart\n a : 1", Undrawn::Syntax);
}

#[test]
fn slices_may_be_called_like_descriptions() {
    let pie = drawn("pie\naccTitle: t\naccDescr: d\naccounts : 40\n\"access\" : 60", 80);
    assert!(pie.contains("accounts") && pie.contains("access") && pie.contains("60.0%"), "{pie}");
}

#[test]
fn type_arguments_and_pointers_are_kept() {
    let drawing = drawn(
        "classDiagram\nclass Box~S~ {\n+b: List~B~\n-char** argv\n+count()$ int\n+next: Node*\n}\nBox <|-- Big",
        80,
    );
    for text in ["Box<S>", "+b: List<B>", "-char** argv", "+count()$ int", "+next: Node*"] {
        assert!(drawing.contains(&format!(" {text} ")), "{text}: {drawing}");
    }
    let tags = drawn("graph LR\nA[\"use &lt;b&gt; tags\"] -->|Vec<U>| B[\"<b>2**10</b>\"]", 80);
    for text in ["use <b> tags", "Vec<U>", "│ 2**10 │"] {
        assert!(tags.contains(text), "{text}: {tags}");
    }
}

#[test]
fn strokes_are_the_same_along_the_whole_line() {
    insta::assert_snapshot!(drawn("graph LR\nA --> B --> C --> D\nA ==> C\nA -.-> D", 80), @"
             ┌───┐
          ┌─►│ B ├─┐    ┌───┐
    ┌───┐ │  └───┘ └───►│ C │
    │   ├─┘          ┏━►│   ├─┐    ┌───┐
    │ A ├━━━━━━━━━━━━┛  └───┘ └───►│ D │
    │   ├┄┐                     ┌┄►│   │
    └───┘ └┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┘  └───┘
    ");
    insta::assert_snapshot!(drawn("graph TD\nA --> B --> C\nA ==>|far| C\nA -.- C", 80), @"
        ┌─────┐
        │  A  │
        └┬─┬─┬┘
       ┌─┘ ┃ └┄┐
       │  far  ┆
       │   ┗┓  ┆
       ▼    ┃  ┆
    ┌───┐   ┃  ┆
    │ B │   ┃  ┆
    └─┬─┘   ┃  ┆
      └──┐ ┏┛  ┆
         │ ┃ ┌┄┘
         ▼ ▼ ┆
        ┌────┴┐
        │  C  │
        └─────┘
    ");
}

#[test]
fn forks_with_a_line_to_themselves_stay_in_one_piece() {
    let source = "stateDiagram\nstate f <<fork>>\na --> f\nf --> f : again\nf --> b\nf --> c\n";
    insta::assert_snapshot!(drawn(&format!("{source}direction LR"), 80), @"
                           ╭───╮
                        ┌─►│ b │
    ╭───╮  ┏━━━━━━━━━━┓ │  ╰───╯
    │ a ├─►┃          ├─┤
    ╰───╯  ┗┬━━━━━━━━━┛ │  ╭───╮
            │  ▲        └─►│ c │
            └──┘ again     ╰───╯
    ");
    insta::assert_snapshot!(drawn(source, 80), @"
        ╭───╮
        │ a │
        ╰─┬─╯
          ▼
       ┏━━━━━┓
       ┃     ├─┐ again
       ┃     ┃◄┘
       ┗━━┬━━┛
      ┌───┴───┐
      ▼       ▼
    ╭───╮   ╭───╮
    │ b │   │ c │
    ╰───╯   ╰───╯
    ");
}

/// The reason names the columns that are missing, whatever is beside the drawing.
#[test]
fn too_wide_means_that_more_columns_would_do() {
    for source in [
        "graph LR\nA[Receives the request] --> B[Answers]",
        "sequenceDiagram\nA->>B: a long message between two",
        "pie\n first : 1\n second : 2",
        DECISION,
        SEQUENCE,
    ] {
        for room in [5, 12, 15] {
            let Err(Undrawn::TooWide(excess)) = draw(source, room) else { panic!("{source}") };
            assert!(
                draw(source, room + excess as u16).is_ok() && draw(source, room + excess as u16 - 1).is_err()
            );
        }
    }
    // No terminal is as wide as these, or as high.
    let actors: String = (0..24).map(|n| format!("actor {}\n", format!("p{n}").repeat(10))).collect();
    check_undrawn(&format!("sequenceDiagram\n{actors}"), Undrawn::TooLarge);
    let chain = (0..70).map(|n| format!("n{n}")).collect::<Vec<_>>().join(" --> ");
    assert_eq!(draw(&format!("graph TD\n{chain}"), 80), Err(Undrawn::TooLarge));
}

/// Lines at the same columns of both ranks wait for each other, until one rank moves.
#[test]
fn lines_in_each_others_way_get_room() {
    let source = "graph TD
        n1 --> n0 ==> n2
        n1 -.-> n2
        n3 -.-> n2
        n2 --- n1
        n2 -.-> n0
        n0 --- n3
        n2 ==> n3
        n3 --> n2 ==> n2
        n0 --- n3
        n2 --- n0
        n1 ==> n3";
    assert!(drawn(source, 400).contains('▼'));
}

#[test]
fn conditions_and_titles_wrap_like_other_texts() {
    let long = "every item that the request has and the store knows";
    insta::assert_snapshot!(
        drawn(&format!("sequenceDiagram\nA->>B: x\nloop {long}\nA->>B: y\nalt {long}\nB->>A: z\nelse not at all, or {long}\nB-xA: no\nend\nend"), 50),
        @"
           ┌───┐     ┌───┐
           │ A │     │ B │
           └─┬─┘     └─┬─┘
             │    x    │
             ├────────►│
        ┌─ loop [every item that the request has ────────┐
        │  and the store knows]                          │
        │    │    y    │                                 │
        │    ├────────►│                                 │
        │ ┌─ alt [every item that the request has and ─┐ │
        │ │  the store knows]                          │ │
        │ │  │    z    │                               │ │
        │ │  │◄────────┤                               │ │
        │ ├┄ [not at all, or every item that the ┄┄┄┄┄┄┤ │
        │ │  request has and the store knows]          │ │
        │ │  │   no    │                               │ │
        │ │  │×────────┤                               │ │
        │ └──│─────────│───────────────────────────────┘ │
        └────│─────────│─────────────────────────────────┘
             │         │
        "
    );
    let groups = format!("a --> one\nsubgraph one [{long}]\nb --> c\nend\nc --> d");
    insta::assert_snapshot!(drawn(&format!("graph TD\n{groups}"), 32), @"
      ┌───┐
      │ a │
      └─┬─┘
        ▼
    ┌─ every item that the ─┐
    │  request has and the  │
    │  store knows          │
    │                       │
    │ ┌───┐                 │
    │ │ b │                 │
    │ └─┬─┘                 │
    │   ▼                   │
    │ ┌───┐                 │
    │ │ c │                 │
    │ └─┬─┘                 │
    │   │                   │
    └───│───────────────────┘
        ▼
      ┌───┐
      │ d │
      └───┘
    ");
    insta::assert_snapshot!(drawn(&format!("graph BT\n{groups}"), 32), @"
      ┌───┐
      │ d │
      └───┘
        ▲
    ┌─ every item that the ─┐
    │  request has and the  │
    │  store knows          │
    │   │                   │
    │ ┌─┴─┐                 │
    │ │ c │                 │
    │ └───┘                 │
    │   ▲                   │
    │ ┌─┴─┐                 │
    │ │ b │                 │
    │ └───┘                 │
    │                       │
    └───────────────────────┘
        ▲
      ┌─┴─┐
      │ a │
      └───┘
    ");
    insta::assert_snapshot!(drawn(&format!("graph RL\n{groups}"), 50), @"
           ┌─ every item that the ─┐
           │  request has and the  │
           │  store knows          │
    ┌───┐  │        ┌───┐  ┌───┐   │  ┌───┐
    │ d │◄─│────────┤ c │◄─┤ b │   │◄─┤ a │
    └───┘  │        └───┘  └───┘   │  └───┘
           └───────────────────────┘
    ");
}

#[test]
fn titles_notes_and_texts_of_boxes_are_not_lost() {
    insta::assert_snapshot!(drawn("---\ntitle: \"A title\"\n---\ngraph LR\nA --> B", 40), @"
    A title

    ┌───┐  ┌───┐
    │ A ├─►│ B │
    └───┘  └───┘
    ");
    insta::assert_snapshot!(drawn("classDiagram\nnote \"of all\"\nA --> B", 40), @"
    ┌────────┐   ┌───┐
    │ of all │   │ A │
    └────────┘   └─┬─┘
                   ▼
                 ┌───┐
                 │ B │
                 └───┘
    ");
    let messages = "\nA->>B: x\nB->>A: y";
    for colour in ["", "Aqua", "rgb(1, 2, 3)", "#fff", "transparent"] {
        let boxed = format!("sequenceDiagram\nbox {colour}\nparticipant A\nparticipant B\nend{messages}");
        assert_eq!(drawn(&boxed, 40), drawn(&format!("sequenceDiagram{messages}"), 40));
    }
    for text in ["Backend", "Purple Client Side", "rgb(1, 2, 3) Backend"] {
        check_undrawn(&format!("sequenceDiagram\nbox {text}\nparticipant A\nend"), Undrawn::Kind);
    }
}

#[test]
fn names_of_participants_are_no_arrows() {
    let drawing = drawn("sequenceDiagram\nparticipant web-xyz\nweb-xyz->>db: query\ndb-->>web-xyz: rows", 60);
    assert_eq!(drawing.matches(" web-xyz ").count(), 1, "{drawing}");
    assert_eq!(drawing.matches('►').count() + drawing.matches('◄').count(), 2, "{drawing}");
    for source in ["web-xyz->>db: query", "A->>B->>C: x", "Note over A,B,C: x", "Note left of A,B: x"] {
        check_undrawn(&format!("sequenceDiagram\n{source}"), Undrawn::Syntax);
    }
}

#[test]
fn styles_links_and_descriptions_leave_a_drawing_as_it_is() {
    for (source, styles) in [
        (
            "graph LR\nA --> B",
            "style A fill:#f9f,stroke:#333\nstyle A,B color:red\nclassDef default fill:#fff\nclass A,B hot;
            linkStyle 0,1 stroke:red\nclick A \"https://x.y\" _blank\nclick B call f()\ndirection TB
            accTitle: a title\naccDescr : a text",
        ),
        (
            "stateDiagram\na --> b",
            "classDef hot fill:#f00\nclass a, b hot\nhide empty description\nscale 350 width",
        ),
        ("classDiagram\nA <|-- B", "cssClass \"A,B\" hot\nlink A \"https://x.y\" \"tip\"\ncallback A \"f\""),
        ("erDiagram\nA ||--o{ B : x", "style A fill:#f9f\nclassDef hot fill:#f00\nclass A hot"),
        (
            "sequenceDiagram\nA->>B: x",
            "link A: Home @ https://x.y\nlinks A: {\"a\": \"b\"}\nactivate B\ndeactivate B",
        ),
    ] {
        assert_eq!(drawn(&format!("{source}\n{styles}"), 80), drawn(source, 80));
    }
    check_undrawn("stateDiagram\n a --> b\n hide all", Undrawn::Syntax);
    check_undrawn("sequenceDiagram\n autonumber x\n A->>B: x", Undrawn::Syntax);
    let numbered =
        drawn("sequenceDiagram\n autonumber 10 5\n A->>B: x\n B->>A: y\n autonumber off\n A->>B: z", 80);
    assert!(
        numbered.contains("10. x") && numbered.contains("15. y") && !numbered.contains(". z"),
        "{numbered}"
    );
}

#[test]
fn what_is_not_understood_is_not_drawn() {
    for source in ["", "gantt\n title x", "mindmap\n root", "hello", "stateDiagram\n a --> b\n --\n c --> d"]
    {
        check_undrawn(source, Undrawn::Kind);
    }
    for source in [
        "graph",
        "graph XX\n A-->B",
        "graph TD\n A[open --> B",
        "graph TD\n A -->",
        "graph TD\n A -- text B",
        "graph TD\n subgraph x\n A --> B",
        "graph TD\n A ? B",
        "graph TD\n A --> B\n end",
        "graph TD\n subgraph x\n A --> x\n end",
        "sequenceDiagram\n A->>B: hi\n loop x",
        "sequenceDiagram\n A says B",
        "classDiagram\n class A {\n +int x",
        "erDiagram\n A ||--?? B : x",
        "pie\n \"a\" : -1",
        "pie\n \"a\" : 0",
    ] {
        check_undrawn(source, Undrawn::Syntax);
    }
}

#[test]
fn sizes_are_limited_before_anything_is_laid_out() {
    let nodes: String = (0..81).map(|n| format!("n{n}\n")).collect();
    let full = (0..60).map(|n| format!("n{n}\n")).collect::<String>();
    let all = |n: usize| (0..n).map(|n| format!("n{n}")).collect::<Vec<_>>().join(" & ");
    let nested: String = (0..7).map(|n| format!("subgraph g{n}\n")).collect();
    for source in [
        format!("graph TD\n{nodes}"),
        format!("graph TD\n{} --> {}", all(11), all(12)),
        format!("graph TD\n{nested}a\n{}", "end\n".repeat(7)),
        format!("graph TD\nA[{}]", "x".repeat(401)),
        format!("graph TD\n{}", "A --> B\n".repeat(400)),
        format!("graph TD\nA{}", " ".repeat(20_000)),
        // A line that passes dozens of ranks takes a place in each.
        format!(
            "graph TD\n{}",
            (0..40).map(|n| format!("n{n} --> n{}\nn0 --> n{n}x --> n40\n", n + 1)).collect::<String>()
                + &(0..30).map(|n| format!("n{n} --> n40\n")).collect::<String>()
        ),
        format!("sequenceDiagram\n{}", (0..25).map(|n| format!("p{n}->>p{n}: x\n")).collect::<String>()),
        format!("sequenceDiagram\n{}", "a->>b: x\n".repeat(201)),
        format!("sequenceDiagram\n{}{}", "loop x\n".repeat(9), "end\n".repeat(9)),
        format!("pie\n{}", "\"x\" : 1\n".repeat(41)),
    ] {
        check_undrawn(&source, Undrawn::TooLarge);
    }
    assert!(draw(&format!("graph LR\n{full}"), 80).is_ok());
}

/// Nothing of a text ends up outside of its cells, and nothing is left of escape sequences.
#[test]
fn hostile_labels_are_text() {
    for label in
        ["\u{1b}[2Jx\u{7}", "#27;[2Jx", "a\u{202e}b", "e\u{301}\u{301}", "👨‍👩‍👧‍👦", "\u{200b}", "क्षि", "  "]
    {
        for source in [
            format!("graph LR\n A[\"{label}\"] -->|\"{label}\"| B"),
            format!("sequenceDiagram\n A->>B: {label}\n Note over A: {label}"),
            format!("pie\n \"{label}\" : 1"),
        ] {
            let rows = draw(&source, 60).unwrap();
            let text = text(&rows);
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
            assert!(!text.contains('\u{202e}'));
            let edges: Vec<usize> = text.lines().map(width).collect();
            assert!(edges.iter().all(|width| *width <= 60), "{text}");
        }
    }
}

/// Sources that are cut, and put together of pieces that may follow each other.
fn sources() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "A",
        "B",
        "C[text]",
        "D{x}",
        "E((",
        "))",
        "[",
        "]",
        "\"",
        "|label|",
        " --> ",
        " -.-> ",
        " ==> ",
        " --- ",
        " <--> ",
        " -- text --> ",
        "~~~",
        " & ",
        "\n",
        "\n",
        "\n",
        ";",
        "subgraph s\n",
        "end\n",
        "世界",
        "👍🏽",
        "A->>B: hi",
        "A-->>A: self",
        "loop x\n",
        "alt y\n",
        "else z\n",
        "Note over A,B: n",
        "[*] --> A",
        "A : text",
        "state S {\n",
        "}\n",
        "<|--",
        "A \"1\" *-- \"n\" B",
        "class A {\n",
        "+int x",
        "A ||--o{ B : r",
        "\"a\" : 3",
    ]);
    let header = prop::sample::select(vec![
        "graph TD\n",
        "graph LR\n",
        "graph BT\n",
        "graph RL\n",
        "sequenceDiagram\n",
        "stateDiagram-v2\n",
        "classDiagram\n",
        "erDiagram\n",
        "pie\n",
        "",
    ]);
    (header, prop::collection::vec(piece, 0..40))
        .prop_map(|(header, pieces)| header.to_owned() + &pieces.concat())
}

/// A graph whose lines may be in groups, with texts and with two heads.
#[derive(Debug)]
struct AnyGraph {
    flow: &'static str,
    /// Per part, whether it is a group, and its edges.
    parts: Vec<(bool, usize)>,
    /// From, to, and whether both ends have a head.
    edges: Vec<(usize, usize, bool)>,
    labels: Vec<bool>,
}

impl std::fmt::Display for AnyGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "graph {}", self.flow)?;
        let mut edges = self.edges.iter().zip(&self.labels).enumerate();
        for (part_idx, (is_group, n_edges)) in self.parts.iter().enumerate() {
            if *is_group {
                writeln!(f, "subgraph g{part_idx}")?;
            }
            for (edge_idx, ((from, to, has_both), has_label)) in edges.by_ref().take(*n_edges) {
                let line = if *has_both { "<-.->" } else { "-->" };
                let label = if *has_label { format!("|label {edge_idx}|") } else { String::new() };
                writeln!(f, "n{from} {line}{label} n{to}")?;
            }
            if *is_group {
                writeln!(f, "end")?;
            }
        }
        Ok(())
    }
}

fn graphs() -> impl Strategy<Value = AnyGraph> {
    let flow = prop::sample::select(vec!["TD", "LR", "BT", "RL"]);
    let edge = (0..14_usize, 0..14_usize, prop::bool::weighted(0.2));
    let part = (prop::bool::weighted(0.2), prop::collection::vec((edge, prop::bool::weighted(0.2)), 1..6));
    (flow, prop::collection::vec(part, 1..8)).prop_map(|(flow, parts)| {
        let sizes = parts.iter().map(|(is_group, edges)| (*is_group, edges.len())).collect();
        let (edges, labels) = parts.into_iter().flat_map(|(_, edges)| edges).unzip();
        AnyGraph { flow, parts: sizes, edges, labels }
    })
}

proptest! {
    #[test]
    fn any_source_is_survived(source in sources(), room in 0_u16..200) {
        if let Ok(rows) = draw(&source, room) {
            prop_assert!(!rows.is_empty() && rows.len() <= MAX_ROWS);
            for row in text(&rows).lines() {
                prop_assert!(width(row) <= usize::from(room), "{row}");
            }
        }
    }

    /// Each node and each text is there once, and arrows point to the nodes that edges lead to and to
    /// no others: nothing lies on anything else.
    #[test]
    fn any_graph_is_drawn_completely(graph in graphs()) {
        let source = graph.to_string();
        let rows = draw(&source, 400);
        prop_assert!(rows.is_ok(), "{:?}: {}", rows, source);
        let drawing = text(&rows.unwrap_or_default());
        let shown = words(&drawing);
        let reader = Reader::new(&drawing);
        let boxes = reader.boxes();
        for node in 0..14 {
            let name = format!("n{node}");
            let n_times = shown.iter().filter(|word| **word == name).count();
            prop_assert_eq!(n_times, usize::from(words(&source).contains(&name.as_str())), "{}\n{}", name, drawing);
            let is_end = |(from, to, has_both): &(usize, usize, bool)| *to == node || *has_both && *from == node;
            if let Some(cells) = boxes.iter().find(|cells| cells.node == node) {
                let is_expected = graph.edges.iter().any(is_end);
                prop_assert_eq!(reader.has_head(cells), is_expected, "{}\n{}", name, drawing);
            }
        }
        let n_labels = drawing.matches("label").count();
        prop_assert_eq!(n_labels, source.matches("label").count(), "{}\n{}", source, drawing);
    }

    #[test]
    fn any_text_is_survived(source in any::<String>(), room in 0_u16..200) {
        draw(&source, room).ok();
        draw(&format!("graph TD\n{source}"), room).ok();
        draw(&format!("sequenceDiagram\n{source}"), room).ok();
    }
}

/// Reads a drawing as a person does: follows the lines from each box in one direction, over
/// lines that cross, borders of groups and texts, to the heads of arrows.
struct Reader {
    cells: Vec<Vec<char>>,
}

/// The cells of a node, with its border.
struct NodeCells {
    node: usize,
    columns: std::ops::RangeInclusive<i32>,
    rows: std::ops::RangeInclusive<i32>,
}

impl NodeCells {
    fn contains(&self, (x, y): (i32, i32)) -> bool {
        self.columns.contains(&x) && self.rows.contains(&y)
    }
}

/// Up, down, left and right; the opposite of one is at the same place with its last bit changed.
const SIDES: [(i32, i32); 4] = [(0, -1), (0, 1), (-1, 0), (1, 0)];
const HEADS: [char; 4] = ['▲', '▼', '◄', '►'];
/// What the border of a box looks like where a line leaves it.
const STARTS: [char; 4] = ['┴', '┬', '┤', '├'];

impl Reader {
    fn new(drawing: &str) -> Self {
        // The stroke of a line does not change where it leads.
        const STROKES: [(&str, &str); 2] = [("┃━┛┓┫┗┏┣┻┳╋┆┄", "│─┘┐┤└┌├┴┬┼│─"), ("╭╮╰╯", "┌┐└┘")];
        let plain = |c: char| {
            let find = |(from, to): &(&str, &str)| to.chars().nth(from.chars().position(|other| other == c)?);
            STROKES.iter().find_map(find).unwrap_or(c)
        };
        Self { cells: drawing.lines().map(|line| line.chars().map(plain).collect()).collect() }
    }

    fn at(&self, (x, y): (i32, i32)) -> char {
        let row = usize::try_from(y).ok().and_then(|y| self.cells.get(y));
        row.and_then(|row| row.get(usize::try_from(x).ok()?)).copied().unwrap_or(' ')
    }

    /// Whether a line leaves a cell upwards, downwards, to the left and to the right.
    fn leaves(c: char) -> [bool; 4] {
        let sides = match c {
            '│' => "ud",
            '─' => "lr",
            '┌' => "dr",
            '┐' => "dl",
            '└' => "ur",
            '┘' => "ul",
            '├' => "udr",
            '┤' => "udl",
            '┬' => "dlr",
            '┴' => "ulr",
            '┼' => "udlr",
            _ => "",
        };
        ['u', 'd', 'l', 'r'].map(|side| sides.contains(side))
    }

    /// The boxes around names such as `n3`, inside of which is nothing else.
    fn boxes(&self) -> Vec<NodeCells> {
        let mut boxes = Vec::new();
        for (y, row) in self.cells.iter().enumerate() {
            for x in 1..row.len() {
                let is_name =
                    row[x] == 'n' && row[x - 1] == ' ' && row.get(x + 1).is_some_and(char::is_ascii_digit);
                if !is_name {
                    continue;
                }
                let digits: String = row[x + 1..].iter().take_while(|c| c.is_ascii_digit()).collect();
                let end = (x + digits.len()) as i32;
                let (x, y) = (x as i32, y as i32);
                let border = |side: usize, from: (i32, i32)| {
                    let (dx, dy) = SIDES[side];
                    (1..400)
                        .map(|n| (from.0 + n * dx, from.1 + n * dy))
                        .find(|at| self.at(*at) != ' ')
                        .unwrap()
                };
                boxes.push(NodeCells {
                    node: digits.parse().unwrap(),
                    columns: border(2, (x, y)).0..=border(3, (end, y)).0,
                    rows: border(0, (x, y)).1..=border(1, (x, y)).1,
                });
            }
        }
        boxes
    }

    /// Whether an arrow points to a box: from outside, or from the line of the box to itself.
    fn has_head(&self, cells: &NodeCells) -> bool {
        let (left, right) = (*cells.columns.start(), *cells.columns.end());
        let (top, bottom) = (*cells.rows.start(), *cells.rows.end());
        let across = |y: i32, head: usize| cells.columns.clone().any(|x| self.at((x, y)) == HEADS[head]);
        let along = |x: i32, head: usize| cells.rows.clone().any(|y| self.at((x, y)) == HEADS[head]);
        across(top - 1, 1) || across(bottom + 1, 0) || along(left - 1, 3) || along(right + 1, 2)
    }

    /// The cell after a text that interrupts a line.
    fn after_text(&self, at: (i32, i32), side: usize) -> Option<(i32, i32)> {
        let is_text = |n: i32| self.at((at.0 + n, at.1)) == 'x';
        match side {
            0 | 1 => is_text(0).then_some(at),
            2 => (self.at(at) == ' ' && is_text(-1)).then_some((at.0 - 2, at.1)),
            _ => (self.at(at) == ' ' && is_text(1)).then_some((at.0 + 2, at.1)),
        }
    }

    /// Where the lines that begin at `from` lead to, read towards one side.
    fn heads(&self, from: (i32, i32), onward: usize) -> Vec<(i32, i32)> {
        let mut open = vec![(from, onward)];
        let mut seen = std::collections::HashSet::new();
        let mut heads = Vec::new();
        while let Some((at, side)) = open.pop() {
            if !seen.insert((at, side)) {
                continue;
            }
            let next = (at.0 + SIDES[side].0, at.1 + SIDES[side].1);
            let c = self.at(next);
            if c == HEADS[onward] && side == onward {
                heads.push((next.0 + SIDES[side].0, next.1 + SIDES[side].1));
            } else if side > 1 && c == '│' {
                open.push((next, side));
            } else if let Some(text) = self.after_text(next, side) {
                open.push((text, side));
            } else {
                let sides = Self::leaves(c);
                assert!(sides[side ^ 1], "a line ends at {next:?}, which is {c:?}");
                let ways = (0..4).filter(|to| sides[*to] && *to != side ^ 1 && *to != onward ^ 1);
                open.extend(ways.map(|to| (next, to)));
            }
        }
        heads
    }

    /// The pairs of nodes that lines connect, if all lead along `sides`.
    fn pairs(&self, sides: [usize; 2]) -> Vec<(usize, usize)> {
        let boxes = self.boxes();
        let mut pairs = Vec::new();
        for from in &boxes {
            for side in sides {
                let cells = from.rows.clone().flat_map(|y| from.columns.clone().map(move |x| (x, y)));
                let is_start = |(x, y): &(i32, i32)| {
                    let edges =
                        [from.rows.start(), from.rows.end(), from.columns.start(), from.columns.end()];
                    *edges[side] == if side < 2 { *y } else { *x } && self.at((*x, *y)) == STARTS[side]
                };
                for to in cells.filter(is_start).flat_map(|start| self.heads(start, side)) {
                    let found =
                        boxes.iter().find(|cells| cells.contains(to)).expect("a head points to a box");
                    pairs.push((from.node, found.node));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

/// Graphs whose lines all lead from node to node, some with a text, in two groups. The pairs of
/// nodes, and the lines of the source.
fn linked_graphs() -> impl Strategy<Value = (Vec<(usize, usize)>, String)> {
    let edge = (0..9_usize, 0..9_usize, 0..8_usize);
    (prop::collection::vec(edge, 1..24), 0..4_usize).prop_map(|(edges, n_groups)| {
        let edges: Vec<_> = edges.into_iter().filter(|(from, to, _)| from != to).collect();
        let line = |(from, to, kind): &(usize, usize, usize)| {
            let line = ["-->", "-->", "-->", "-->", "-->|x|", "-.->", "==>", "==>|x|"][*kind];
            format!("n{from} {line} n{to}\n")
        };
        let groups = [
            "",
            "subgraph g [\" \"]\nn1\nn2\nend\n",
            "subgraph h [\" \"]\nn3\nsubgraph i [\" \"]\nn4\nend\nend\n",
        ];
        let groups = groups[..n_groups.min(3)].concat();
        let source = groups + &edges.iter().map(line).collect::<String>();
        let mut pairs: Vec<(usize, usize)> = edges.iter().map(|(from, to, _)| (*from, *to)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        (pairs, source)
    })
}

proptest! {
    #[test]
    fn lines_of_any_graph_lead_where_its_edges_do((pairs, lines) in linked_graphs()) {
        for (flow, sides) in [("TD", [0, 1]), ("BT", [0, 1]), ("LR", [2, 3]), ("RL", [2, 3])] {
            let source = format!("graph {flow}\n{lines}");
            match draw(&source, 400) {
                Ok(rows) => {
                    let drawing = text(&rows);
                    prop_assert_eq!(Reader::new(&drawing).pairs(sides), pairs.clone(), "{}\n{}", source, drawing);
                }
                Err(reason) => prop_assert!(pairs.is_empty(), "{:?}: {}", reason, source),
            }
        }
    }
}

/// The words of a text, which may be broken anywhere but inside them.
fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// A diagram of one statement per line, whose statements are made of names, new words and
/// numbers, and the words that its drawing has to show. At last whether no name is a word of a style.
fn statements_of(kind: usize) -> impl Strategy<Value = (String, Vec<String>, bool)> {
    const NAMES: [&str; 12] = [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "class",
        "hide",
        "link",
        "click",
        "style",
        "direction",
        "note",
        "access",
    ];
    // `N` is a name, `T` a new word, `H` one that a text replaces, `#` a number.
    const KINDS: [(&str, &[&str]); 6] = [
        (
            "graph LR",
            &[
                "N --> N",
                "N -->|T| N",
                "N -- T --- N",
                "N ==>|\"T T\"| N",
                "N:::hot -.-> N & N",
                "H[\"T T\"] --> N",
                "H(T) & N x--x N",
                "H{T}",
                "subgraph T\nN --> T\nend",
                "subgraph H [T T]\nT\nend",
                "N <--> N",
                "N o--o N",
            ],
        ),
        (
            "stateDiagram-v2",
            &[
                "N --> N",
                "N --> N : T T",
                "N:::hot --> N : T",
                "[*] --> N",
                "N --> [*] : T",
                "H : T T",
                "state \"T T\" as H",
                "state T {\nT --> T : T\n}",
                "note right of N : T",
                "note left of N\nT T\nend note",
            ],
        ),
        (
            "classDiagram",
            &[
                "N <|-- N",
                "N \"#..*\" --> \"#\" N : T",
                "N ..> N:::hot",
                "N : +T T",
                "N : +T(T) T",
                "class T {\n+T T\n-T()\n}",
                "note for N \"T T\"",
                "class H[\"T T\"]",
                "class T~T~",
                "namespace T {\nclass T\n}",
                "<<T>> N",
            ],
        ),
        (
            "erDiagram",
            &[
                "N ||--o{ N : T",
                "N:::hot }|..|{ N : \"T T\"",
                "T {\nstring T PK\nint T \"T T\"\n}",
                "H[\"T T\"] ||--|| N : T",
            ],
        ),
        (
            "sequenceDiagram",
            &[
                "N->>N: T",
                "N-->>+N: T T",
                "N -x N: T",
                "note over N: T",
                "note over N,N: T",
                "loop T T\nN->>N: T\nend",
                "alt T\nN->>N: T\nelse T\nN-->>N: T\nend",
                "participant H as T T",
                "participant T",
                "activate N",
                "opt\nN->>T: T\nend",
                "rect rgb(0, 0, 0)\nN->>N: #\nend",
            ],
        ),
        ("pie showData", &["\"T T\" : #", "T : #", "\"N\" : #", "N : #"]),
    ];
    let (header, templates) = KINDS[kind];
    let name = prop::sample::select(NAMES.to_vec());
    let statement = (prop::sample::select(templates.to_vec()), prop::collection::vec(name, 4));
    prop::collection::vec(statement, 1..8).prop_map(move |statements| {
        let (mut source, mut expected) = (header.to_owned(), Vec::new());
        let (mut n_hidden, mut is_plain) = (0, true);
        for (template, names) in statements {
            let mut names = names.into_iter();
            source.push('\n');
            for c in template.chars() {
                let word = match c {
                    'N' => names.next().unwrap_or("alpha").to_owned(),
                    'T' | 'H' => format!("w{}", expected.len() + n_hidden),
                    '#' => format!("9{}", expected.len() + n_hidden),
                    c => {
                        source.push(c);
                        continue;
                    }
                };
                is_plain &= !NAMES[4..].contains(&word.as_str());
                source.push_str(&word);
                if c == 'H' {
                    n_hidden += 1;
                } else {
                    expected.push(word);
                }
            }
        }
        (source, expected, is_plain)
    })
}

proptest! {
    /// Parsers know statements that show nothing. None of these is one.
    #[test]
    fn every_word_of_a_source_is_drawn_or_nothing_is(
        (source, expected, is_plain) in (0..6_usize).prop_flat_map(statements_of),
    ) {
        match draw(&source, 400) {
            Ok(rows) => {
                let drawing = text(&rows);
                let shown = words(&drawing);
                for word in expected {
                    prop_assert!(shown.contains(&word.as_str()), "{} of\n{}\n{}", word, source, drawing);
                }
            }
            Err(reason) => prop_assert!(!is_plain, "{:?}: {}", reason, source),
        }
    }
}

#[test]
fn every_beginning_of_a_diagram_is_survived() {
    for source in [DECISION, SEQUENCE] {
        for (end, _) in source.char_indices() {
            for room in [30, 80] {
                draw(&source[..end], room).ok();
            }
        }
    }
}
