//! The grammars for syntax highlighting, which the build script takes from `two-face` and rewrites
//! (`compact.rs`).

use syntect::dumps::from_uncompressed_data;
use syntect::parsing::SyntaxSet;

#[cfg(test)]
mod compact;

/// Loads the grammars of 200 languages for lines with their line breaks; takes a few milliseconds. Regular
/// expressions are compiled when they are first needed.
pub fn grammars() -> SyntaxSet {
    from_uncompressed_data(include_bytes!(concat!(env!("OUT_DIR"), "/grammars.bin")))
        .expect("the build script wrote it")
}

#[cfg(test)]
mod tests {
    use syntect::parsing::syntax_definition::Pattern;
    use syntect::parsing::{ParseState, ScopeStackOp};

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

    /// What the grammars find in code.
    fn found(grammars: &SyntaxSet, lang: &str, code: &str) -> Vec<Vec<(usize, ScopeStackOp)>> {
        let mut parser = ParseState::new(grammars.find_syntax_by_token(lang).unwrap());
        code.split_inclusive('\n').map(|line| parser.parse_line(line, grammars).unwrap()).collect()
    }

    #[test]
    fn code_is_highlighted_as_by_the_original_grammars() {
        let (ours, original) = (grammars(), two_face::syntax::extra_newlines());
        assert_eq!(ours.syntaxes().len(), original.syntaxes().len());
        for (lang, code) in SAMPLES {
            assert_eq!(found(&ours, lang, code), found(&original, lang, code), "{lang}");
        }
    }

    #[test]
    fn no_grammar_has_classes_that_take_long_to_compile() {
        let builder = grammars().into_builder();
        let contexts = builder.syntaxes().iter().flat_map(|syntax| syntax.contexts.values());
        let patterns = contexts.flat_map(|context| &context.patterns);
        let left = patterns.filter_map(|pattern| match pattern {
            Pattern::Match(pattern) => compact::compact_classes(pattern.regex.regex_str()),
            Pattern::Include(_) => None,
        });
        assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
    }
}
