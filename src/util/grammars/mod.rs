//! The grammars for syntax highlighting, which the build script takes from `two-face`, rewrites
//! (`compact.rs`) and writes one by one, each in the wire format of postcard.
//!
//! A grammar names contexts of others by the place of their language among all languages. So a set
//! for one language has its languages at these places, and empty ones at all others.

#[cfg(test)]
mod compact;
#[cfg(test)]
mod embeds;
mod language;

use std::sync::Arc;

use syntect::parsing::{ParseState, ScopeStackOp, SyntaxSet};

use language::Language;

use super::embedded::embedded_bytes;

const INDEX: &[u8] = embedded_bytes!(concat!(env!("OUT_DIR"), "/grammars.idx"));
const GRAMMARS: &[u8] = embedded_bytes!(concat!(env!("OUT_DIR"), "/grammars.bin"));

/// An empty grammar: each of its seven fields takes one byte that says so.
const EMPTY: [u8; 7] = [0; 7];

/// When code of more languages is highlighted, the one that was not needed for longest is forgotten.
const MAX_SETS: usize = 16;

/// The grammars of 200 languages. Each is loaded when code of its language is first highlighted, with
/// those of the languages that this one embeds. Regular expressions are compiled when they are first
/// needed.
#[derive(Debug)]
pub struct Grammars {
    languages: Vec<Language<'static>>,
    /// The one that was needed last is the last.
    sets: Vec<GrammarSet>,
}

#[derive(Debug)]
struct GrammarSet {
    languages: &'static [u8],
    syntaxes: Arc<SyntaxSet>,
}

/// Finds the scopes in code of one language, line by line.
#[derive(Debug, Clone)]
pub struct CodeParser {
    syntaxes: Arc<SyntaxSet>,
    state: ParseState,
}

impl Default for Grammars {
    fn default() -> Self {
        let languages = postcard::from_bytes(INDEX).expect("the build script wrote it");
        Self { languages, sets: Vec::new() }
    }
}

impl Grammars {
    /// Begins code of a language, which has a name or the extension of a file. `None` for text and
    /// for unknown languages.
    pub fn parser(&mut self, language: &str) -> Option<CodeParser> {
        let language = self.find(token(language)?)?;
        let syntaxes = self.set_with(language);
        let state = ParseState::new(syntaxes.syntaxes().get(language)?);
        Some(CodeParser { syntaxes, state })
    }

    /// Drops the grammars that were loaded; parsers keep theirs.
    pub fn forget(&mut self) {
        self.sets = Vec::new();
    }

    /// The last one with this extension, or else with this name.
    fn find(&self, token: &str) -> Option<usize> {
        let has_extension =
            |language: &Language<'_>| language.extensions.lines().any(|e| e.eq_ignore_ascii_case(token));
        self.languages
            .iter()
            .rposition(has_extension)
            .or_else(|| self.languages.iter().rposition(|language| language.name.eq_ignore_ascii_case(token)))
    }

    /// A set with this language: its own, or else one that was loaded for a language that embeds it.
    fn set_with(&mut self, language: usize) -> Arc<SyntaxSet> {
        let has_it = |set: &GrammarSet| set.languages.iter().any(|&index| usize::from(index) == language);
        let found = self.sets.iter().enumerate().filter(|(_, set)| has_it(set));
        // Its own set is the smallest; in another one its regular expressions would be compiled again.
        let set = match found.min_by_key(|(_, set)| set.languages.len()) {
            Some((at, _)) => self.sets.remove(at),
            None => {
                let languages = self.languages[language].needs;
                GrammarSet { languages, syntaxes: Arc::new(self.load(languages)) }
            }
        };
        let syntaxes = Arc::clone(&set.syntaxes);
        self.sets.push(set);
        if self.sets.len() > MAX_SETS {
            self.sets.remove(0);
        }
        syntaxes
    }

    /// A set of these languages, which are ascending.
    fn load(&self, needs: &[u8]) -> SyntaxSet {
        let len = needs.last().map_or(0, |&last| usize::from(last) + 1);
        let mut needs = needs.iter().map(|&index| usize::from(index)).peekable();
        let written = |number: usize| postcard::to_allocvec(&number).expect("numbers can be written");
        // A list is its length and its elements.
        let mut set = written(len);
        for index in 0..len {
            let grammar = needs.next_if_eq(&index).map_or(&EMPTY[..], |index| self.grammar(index));
            set.extend_from_slice(grammar);
        }
        // The list of files, of which there are none.
        set.extend_from_slice(&written(0));
        postcard::from_bytes(&set).expect("the build script wrote the grammars")
    }

    fn grammar(&self, index: usize) -> &'static [u8] {
        let Language { start, end, .. } = self.languages[index];
        &GRAMMARS[start as usize..end as usize]
    }
}

/// Equal if what follows is parsed alike; both are of one language.
impl PartialEq for CodeParser {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl CodeParser {
    /// What begins and ends where in the next line, which has its line break. `None` if the grammar
    /// fails on it.
    pub fn line(&mut self, line: &str) -> Option<Vec<(usize, ScopeStackOp)>> {
        self.state.parse_line(line, &self.syntaxes).ok()
    }
}

/// What the index may know the language by.
fn token(language: &str) -> Option<&str> {
    const ALIASES: [(&str, &str); 10] = [
        ("shell", "sh"),
        ("console", "sh"),
        ("zsh", "sh"),
        ("golang", "go"),
        ("jsonc", "json"),
        ("json5", "json"),
        ("docker", "dockerfile"),
        ("c++", "cpp"),
        ("csharp", "cs"),
        ("objc", "m"),
    ];
    let is_text = ["", "text", "txt", "plain"].iter().any(|name| name.eq_ignore_ascii_case(language));
    let alias = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(language));
    (!is_text).then(|| alias.map_or(language, |(_, token)| token))
}

#[cfg(test)]
mod tests {
    use syntect::parsing::syntax_definition::Pattern;

    use super::*;

    /// Code with names in several scripts, by language.
    const SAMPLES: [(&str, &str); 8] = [
        (
            "ts",
            r#"import type { Größe as G, 名前 } from './typen';
@Component({ selector: 'app', template: `<a>${x}</a>` })
export abstract class Überlauf<T extends object = {}> extends Base<T> implements A, B<T> {
  private readonly größe: number = 0x1f_00; static #count = 10n;
  get value(): T | undefined { return this.#v as unknown as T; }
  async *items<K extends keyof T>(key: K, ...rest: any[]): AsyncGenerator<T[K]> {
    for await (const [i, x] of this.entries()) yield x?.[key] ?? rest[i];
  }
  onChange = (ev: Event): void => { console.log(`größe: ${ev.type}`, /[a-zä]+\/(?:x)/giu.test("ü")); };
}
type Fn<A, R> = (a: A, b?: { [k: string]: unknown }) => R extends infer U ? U : never;
const f = async <T,>(x: T) => ({ ...x, y: await g<number>(1.5e3), z: x satisfies T });
"#,
        ),
        ("tsx", "const Größe = () => <Übung größe={1} {...props}>{名前}</Übung>;\n"),
        (
            "js",
            "let änderung = async ({ größe = 3, ...rest }) => /ä\\d+/u.test(größe) || new Größe().名前();\n",
        ),
        (
            "py",
            r#"@dataclass(frozen=True)
class Größe(Base, metaclass=ABCMeta):
    größe: int = 0xFF_00
    async def méthode(self, *args: Any, größe=3) -> Optional["Größe"]:
        x = f"{self.größe!r:>{breite}} é" if not kw else lambda é, y=2: é + ÄNDERUNG.名前(y)
        return [größe.strip() for größe in Liste if größe is not None]
"#,
        ),
        (
            "rs",
            r##"pub struct Größe<'a, T: Display + 'static> { pub(crate) größe: &'a str, t: Vec<Option<T>> }
fn next(&mut self) -> Option<Self::Item> { match größe { 0..=9 | 'ä' => r#"é"#, x => ÄÖÜ::WERT.f::<Übung>(x) } }
"##,
        ),
        (
            "go",
            "package größe\n\nfunc (g *Größe) Änderung(ü ...int) (名前 string, err error) { return g.ü[0x1f], nil }\n",
        ),
        (
            "java",
            "public final class Größe<T extends Übung> { private int größe = 3; String 名前() { return ÄÖÜ.f(größe); } }\n",
        ),
        (
            "cpp",
            "template <typename Größe> auto änderung(Größe &&ü) -> decltype(ü.名前()) { return ÄÖÜ::f<int>(ü); }\n",
        ),
    ];

    /// What the original grammars find in code.
    fn found(grammars: &SyntaxSet, lang: &str, code: &str) -> Vec<Vec<(usize, ScopeStackOp)>> {
        let mut parser = ParseState::new(grammars.find_syntax_by_token(lang).unwrap());
        code.split_inclusive('\n').map(|line| parser.parse_line(line, grammars).unwrap()).collect()
    }

    fn found_by_ours(parser: &mut CodeParser, code: &str) -> Vec<Vec<(usize, ScopeStackOp)>> {
        code.split_inclusive('\n').map(|line| parser.line(line).unwrap()).collect()
    }

    fn all() -> SyntaxSet {
        let all: Vec<u8> = (0..=u8::MAX).take(Grammars::default().languages.len()).collect();
        Grammars::default().load(&all)
    }

    #[test]
    fn code_is_highlighted_as_by_the_original_grammars() {
        let (mut ours, original) = (Grammars::default(), two_face::syntax::extra_newlines());
        for (lang, code) in SAMPLES {
            let parser = &mut ours.parser(lang).unwrap();
            assert_eq!(found_by_ours(parser, code), found(&original, lang, code), "{lang}");
        }
    }

    #[test]
    fn every_language_is_found_as_in_the_original_grammars() {
        let (ours, original) = (Grammars::default(), two_face::syntax::extra_newlines());
        assert_eq!(ours.languages.len(), original.syntaxes().len());
        for (language, expected) in ours.languages.iter().zip(original.syntaxes()) {
            assert_eq!(language.name, expected.name);
            let tokens = expected.file_extensions.iter().chain([&expected.name]);
            for token in tokens.flat_map(|token| [token.clone(), token.to_uppercase()]) {
                let found = ours.find(&token).map(|at| ours.languages[at].name);
                let expected = original.find_syntax_by_token(&token).map(|syntax| syntax.name.as_str());
                assert_eq!(found, expected, "{token}");
            }
        }
    }

    /// Highlights code of many languages with every grammar, so that they reach what they embed.
    #[test]
    fn every_language_loads_all_that_it_needs() {
        let (mut grammars, all) = (Grammars::default(), all());
        let code: String = SAMPLES.iter().map(|(lang, code)| format!("```{lang}\n{code}```\n")).collect();
        let code = format!("{code}<?php f(); ?><script>let a = 1;</script><style>a {{ b: c }}</style>\n");
        for language in 0..grammars.languages.len() {
            grammars.sets.clear();
            let syntaxes = grammars.set_with(language);
            let state = ParseState::new(&syntaxes.syntaxes()[language]);
            let mut parser = CodeParser { syntaxes, state };
            let mut whole = ParseState::new(&all.syntaxes()[language]);
            for line in code.split_inclusive('\n') {
                let expected = whole.parse_line(line, &all).unwrap();
                assert_eq!(parser.line(line), Some(expected), "{}", grammars.languages[language].name);
            }
        }
    }

    /// References lead only to languages of the set, so none leads to an empty one.
    #[test]
    fn sets_are_closed() {
        let grammars = Grammars::default();
        let definitions = all().into_builder();
        for (index, definition) in definitions.syntaxes().iter().enumerate() {
            let needs = grammars.languages[index].needs;
            assert!(needs.contains(&u8::try_from(index).unwrap()), "{}", definition.name);
            for embedded in embeds::embedded(definition).unwrap() {
                assert!(needs.contains(&embedded), "{} embeds {embedded}", definition.name);
                let of_embedded = grammars.languages[usize::from(embedded)].needs;
                assert!(of_embedded.iter().all(|index| needs.contains(index)), "{}", definition.name);
            }
        }
    }

    #[test]
    fn only_grammars_of_the_language_are_loaded() {
        let mut grammars = Grammars::default();
        let names = |grammars: &Grammars| -> Vec<Vec<&str>> {
            let name = |index: &u8| grammars.languages[usize::from(*index)].name;
            grammars.sets.iter().map(|set| set.languages.iter().map(name).collect()).collect()
        };
        grammars.parser("rust").unwrap();
        assert_eq!(names(&grammars), [["Rust"]]);
        let n_loaded = |set: &GrammarSet| {
            set.syntaxes.syntaxes().iter().filter(|syntax| !syntax.name.is_empty()).count()
        };
        assert_eq!(n_loaded(&grammars.sets[0]), 1);
        grammars.parser("py").unwrap();
        let python = vec!["Python", "Regular Expressions (Python)", "SQL"];
        assert_eq!(names(&grammars), [vec!["Rust"], python.clone()]);
        // What is there already serves again, also for an embedded language.
        let set = Arc::clone(&grammars.parser("sql").unwrap().syntaxes);
        assert!(Arc::ptr_eq(&set, &grammars.parser("python").unwrap().syntaxes));
        grammars.parser("rs").unwrap();
        assert_eq!(names(&grammars), [python, vec!["Rust"]]);
        // It keeps its own set beside one of a language that embeds it.
        let rust = Arc::clone(&grammars.parser("rust").unwrap().syntaxes);
        grammars.parser("md").unwrap();
        assert!(Arc::ptr_eq(&rust, &grammars.parser("rust").unwrap().syntaxes));
        assert!(grammars.parser("no-such-language").is_none() && grammars.parser("text").is_none());
        assert_eq!(grammars.sets.len(), 3);
    }

    #[test]
    fn languages_that_were_not_needed_for_long_are_forgotten() {
        let mut grammars = Grammars::default();
        let mut loaded = Vec::new();
        for language in 0..grammars.languages.len() {
            loaded.push(grammars.set_with(language));
            assert!(grammars.sets.len() <= MAX_SETS);
        }
        let last = loaded.pop().unwrap();
        assert!(Arc::ptr_eq(&last, &grammars.set_with(loaded.len())));
        assert!(!Arc::ptr_eq(&loaded[0], &grammars.set_with(0)));
    }

    #[test]
    fn no_grammar_has_classes_that_take_long_to_compile() {
        let builder = all().into_builder();
        let contexts = builder.syntaxes().iter().flat_map(|syntax| syntax.contexts.values());
        let patterns = contexts.flat_map(|context| &context.patterns);
        let left = patterns.filter_map(|pattern| match pattern {
            Pattern::Match(pattern) => compact::compact_classes(pattern.regex.regex_str()),
            Pattern::Include(_) => None,
        });
        assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
    }
}
