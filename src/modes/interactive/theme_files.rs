//! Where themes are, and the one of the settings.
//!
//! A theme is a file `NAME.json`. Of two with one name the first counts: files of `--theme`,
//! `.pi/themes` of a trusted project and its setting `themes`, the user's setting `themes`,
//! `~/.pi/agent/themes`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::config::{Dirs, EffectiveSettings, Env, Settings};
use crate::session::{ResourceFilter, ResourceOptions, ResourceOrigin, SessionState};
use crate::tui::theme::{Appearance, BUILTIN_NAMES, ColorDepth, TerminalColors, Theme};
use crate::util::nearest::nearest;
use crate::util::visible::{is_all_visible, spell_out};
use crate::util::{line_of_key, os};

use super::appearance::{Looks, background};

/// Maximum number of themes of a directory.
const MAX_THEMES: usize = 500;
/// Most themes that cannot be used of which each is named at the start.
const MAX_PROBLEMS: usize = 6;
/// Maximum size of a theme, in bytes; those known have 3,000.
const MAX_THEME_BYTES: u64 = 1 << 20;

/// A theme that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedTheme {
    pub(super) name: String,
    /// Why it cannot be used, with path and line.
    pub(super) problem: Option<String>,
}

/// A theme of the user or a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnTheme {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) origin: ResourceOrigin,
}

/// What is wrong with `setting` as the name of a theme or a pair of them, one line each. Blocks.
pub fn theme_problems(
    env: &Env,
    dirs: &Dirs,
    settings: &EffectiveSettings,
    project: Option<&Path>,
    setting: &str,
) -> Vec<String> {
    let (looks, named) = (Looks { env, dirs }, ResourceOptions::default());
    let places = ThemePlaces { looks: &looks, settings, project, named: &named };
    let (files, _) = places.files();
    let mut problems = places.missing(setting, &files);
    problems.extend(places.broken(&files, |name| is_used(setting, name)));
    problems
}

/// Whether `setting`, the name of a theme or a pair of them, names this one.
fn is_used(setting: &str, name: &str) -> bool {
    setting.split('/').any(|used| used == name)
}

/// The names of themes in `files`.
fn own_names(files: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| path.file_stem()?.to_str().map(str::to_owned);
    let mut own: Vec<String> = files.iter().filter_map(name).collect();
    own.retain(|name| !BUILTIN_NAMES.contains(&name.as_str()));
    own.sort();
    own.dedup();
    own
}

/// The built-in names, and those of `files`.
fn all_names(files: &[PathBuf]) -> Vec<String> {
    BUILTIN_NAMES.into_iter().map(str::to_owned).chain(own_names(files)).collect()
}

/// What decides where themes are.
pub(super) struct ThemePlaces<'a> {
    pub(super) looks: &'a Looks<'a>,
    pub(super) settings: &'a EffectiveSettings,
    /// The project's directory, if it is trusted.
    pub(super) project: Option<&'a Path>,
    /// Those of the command line.
    pub(super) named: &'a ResourceOptions,
}

/// The project's directory, if its themes count.
pub(super) fn trusted_project(session: &SessionState) -> Option<&Path> {
    session.project.trust.is_trusted().then_some(session.cwd.as_path())
}

impl ThemePlaces<'_> {
    /// The theme of `settings`: built in, from a file, or of a pair `LIGHT/DARK` the one that
    /// suits the terminal. Problems are added, and the system theme is used. Blocks.
    pub(super) fn theme(
        &self,
        settings: &Settings,
        colors: &TerminalColors,
        problems: &mut Vec<String>,
    ) -> Theme {
        self.load(settings, colors, problems).unwrap_or_else(|problem| {
            problems.push(format!("{problem}; using the system theme"));
            Theme::system(colors, background(self.looks.env), self.looks.color_depth(settings))
        })
    }

    /// The same; problems with the places of themes are added.
    ///
    /// # Errors
    /// Why the theme cannot be used.
    pub(super) fn load(
        &self,
        settings: &Settings,
        colors: &TerminalColors,
        problems: &mut Vec<String>,
    ) -> Result<Theme, String> {
        let depth = self.looks.color_depth(settings);
        let background = background(self.looks.env);
        let name = self.chosen(&settings.theme, colors);
        if name == "system" {
            return Ok(Theme::system(colors, background, depth));
        }
        if let Some(theme) = Theme::builtin(name, background, depth) {
            return Ok(theme);
        }
        let (files, wrong) = self.files();
        problems.extend(wrong);
        let path = file_of(name, &files).ok_or_else(|| self.unknown(name, &files))?;
        self.read(path, depth).map_err(|problem| format!("theme \"{name}\": {problem}"))
    }

    /// The file of the theme that `setting`, a name or a pair, stands for, if it has one. Blocks.
    pub(super) fn file(&self, setting: &str, colors: &TerminalColors) -> Option<PathBuf> {
        let name = self.chosen(setting, colors);
        if BUILTIN_NAMES.contains(&name) {
            return None;
        }
        file_of(name, &self.files().0).cloned()
    }

    /// Of a pair the name that suits the terminal.
    fn chosen<'a>(&self, setting: &'a str, colors: &TerminalColors) -> &'a str {
        let Some((light, dark)) = setting.split_once('/') else { return setting };
        match colors.appearance().unwrap_or_else(|| background(self.looks.env)) {
            Appearance::Light => light,
            Appearance::Dark => dark,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Names path, line and reason.
    fn read(&self, path: &Path, depth: ColorDepth) -> Result<Theme, String> {
        let shown = self.looks.dirs.display(path);
        let json = os::open_regular(path)
            .and_then(|file| std::io::read_to_string(file.take(MAX_THEME_BYTES)))
            .map_err(|error| format!("{shown}: {error}"))?;
        if json.len() as u64 == MAX_THEME_BYTES {
            return Err(format!("{shown}: larger than 1 MiB, so it is no theme"));
        }
        let json = json.strip_prefix('\u{feff}').unwrap_or(&json);
        Theme::parse(json, depth).map_err(|error| match error.key().and_then(|key| line_of_key(json, key)) {
            Some(line) => format!("{shown}:{line}: {error}"),
            None => format!("{shown}: {error}"),
        })
    }

    /// Says that there is no theme of this name, with the name that was probably meant.
    fn unknown(&self, name: &str, files: &[PathBuf]) -> String {
        let shown =
            self.looks.dirs.display(&self.looks.dirs.agent.join("themes").join(format!("{name}.json")));
        let names = all_names(files);
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        match nearest(name, &known) {
            Some(meant) => format!("theme \"{name}\": there is no {shown}; did you mean \"{meant}\"?"),
            None => format!("theme \"{name}\": there is no {shown}"),
        }
    }

    /// All themes, the built-in ones first. Blocks: reads every file.
    pub(super) fn list(&self) -> Vec<ListedTheme> {
        let (files, _) = self.files();
        let listed = all_names(&files).into_iter().map(|name| {
            let problem = self.problem(&name, &files);
            ListedTheme { name, problem }
        });
        listed.collect()
    }

    /// Why the theme of this name cannot be used.
    fn problem(&self, name: &str, files: &[PathBuf]) -> Option<String> {
        if BUILTIN_NAMES.contains(&name) {
            return None;
        }
        self.read(file_of(name, files)?, ColorDepth::True).err()
    }

    /// What is wrong with the themes whose names `is_meant` accepts, one line each.
    fn broken(&self, files: &[PathBuf], is_meant: impl Fn(&str) -> bool) -> Vec<String> {
        let names = all_names(files).into_iter().filter(|name| is_meant(name));
        names.filter_map(|name| Some(format!("theme \"{name}\": {}", self.problem(&name, files)?))).collect()
    }

    /// The names in `setting` that no theme has, one line each.
    fn missing(&self, setting: &str, files: &[PathBuf]) -> Vec<String> {
        let names = all_names(files);
        let missing = setting.split('/').filter(|used| !names.iter().any(|name| name == used));
        missing.map(|name| self.unknown(name, files)).collect()
    }

    /// The themes in files that can be used, sorted by name. Blocks.
    pub(super) fn own(&self) -> Vec<OwnTheme> {
        let (found, _) = self.all_files();
        let files: Vec<PathBuf> = readable(&found).map(|(_, path)| path.clone()).collect();
        let theme = |name: String| {
            let path = file_of(&name, &files)?.clone();
            let origin = found.iter().find(|(_, found)| *found == path)?.0;
            self.problem(&name, &files).is_none().then_some(OwnTheme { name, path, origin })
        };
        own_names(&files).into_iter().filter_map(theme).collect()
    }

    /// What is wrong with all themes and the places of themes, one line each, except with the
    /// themes that `setting` names, which [`Self::theme`] reports. Blocks: reads every file.
    pub(super) fn problems_of_others(&self, setting: &str) -> Vec<String> {
        // Where they are is not looked at for a theme that is built in.
        let (files, mut problems) = self.files();
        problems.extend(self.no_themes());
        problems.extend(self.broken(&files, |name| !is_used(setting, name)));
        // A collection of another version has many of one kind.
        let n_more = problems.len().saturating_sub(MAX_PROBLEMS);
        if n_more > 1 {
            problems.truncate(MAX_PROBLEMS);
            problems.push(format!("{n_more} more themes cannot be used; pi doctor names them"));
        }
        problems
    }

    /// What is wrong with all themes, the places of themes and the names in `setting`, one line
    /// each. Blocks: reads every file.
    pub(super) fn problems(&self, setting: &str) -> Vec<String> {
        let (files, mut problems) = self.files();
        problems.extend(self.missing(setting, &files));
        problems.extend(self.no_themes());
        problems.extend(self.broken(&files, |_| true));
        problems
    }

    /// What is at a place of themes and can never be one, one line each with what to do.
    fn no_themes(&self) -> Vec<String> {
        let (found, _) = self.all_files();
        let problem = |path: &PathBuf| {
            let problem = why_no_theme(path)?;
            let (shown, _) = spell_out(&self.looks.dirs.display(path), None);
            Some(format!("{shown}: {problem}"))
        };
        found.iter().filter_map(|(_, path)| problem(path)).collect()
    }

    /// The files in order of precedence, and problems with their places, one line each.
    fn files(&self) -> (Vec<PathBuf>, Vec<String>) {
        let (found, problems) = self.all_files();
        (readable(&found).map(|(_, path)| path.clone()).collect(), problems)
    }

    /// The same with where each comes from, also with what is no theme.
    fn all_files(&self) -> (Vec<(ResourceOrigin, PathBuf)>, Vec<String>) {
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        for path in &self.named.paths {
            let found = files_at(path);
            if found.is_empty() {
                let shown = self.looks.dirs.display(path);
                problems.push(format!(
                    "--theme {shown}: no theme there; name a .json file or a directory of them"
                ));
            }
            files.extend(found.into_iter().map(|path| (ResourceOrigin::CommandLine, path)));
        }
        if self.named.only_paths {
            return (files, problems);
        }
        let home = self.looks.dirs.home.as_deref();
        let mut add = |origin: ResourceOrigin, entries: &[String], base: &Path| {
            let (filter, places, wrong) = ResourceFilter::new(entries, base, home);
            problems.extend(wrong.iter().map(|cause| format!("setting \"themes\": {cause}")));
            for place in places.iter().filter(|place| files_at(place).is_empty()) {
                let shown = self.looks.dirs.display(place);
                problems.push(format!("setting \"themes\": {shown}: no theme there"));
            }
            let usual = base.join("themes");
            let found = places.iter().chain([&usual]).flat_map(|place| files_at(place));
            files.extend(found.filter(|path| filter.keeps(path)).map(|path| (origin, path)));
        };
        if let Some(project) = self.project {
            let entries = self.settings.project_value("themes").cloned().unwrap_or_default();
            let entries: Vec<String> = serde_json::from_value(entries).unwrap_or_default();
            add(ResourceOrigin::Project, &entries, &project.join(".pi"));
        }
        add(ResourceOrigin::User, &self.settings.values.themes, &self.looks.dirs.agent);
        (files, problems)
    }
}

/// The files whose themes can be used.
fn readable(found: &[(ResourceOrigin, PathBuf)]) -> impl Iterator<Item = &(ResourceOrigin, PathBuf)> {
    found.iter().filter(|(_, path)| has_readable_name(path) && path.is_file())
}

/// The first file of a theme with this name.
fn file_of<'a>(name: &str, files: &'a [PathBuf]) -> Option<&'a PathBuf> {
    files.iter().find(|path| path.file_stem().is_some_and(|stem| *stem == *name))
}

/// Whether a command can name the theme in this file, and what it names is what is seen.
fn has_readable_name(path: &Path) -> bool {
    let name = path.file_stem().and_then(|stem| stem.to_str());
    name.is_some_and(|name| is_all_visible(name) && !name.contains('\n'))
}

/// Why there is never a theme at this path, and what to do about it; `None` if there may be one.
fn why_no_theme(path: &Path) -> Option<String> {
    if !has_readable_name(path) {
        return Some("its name has characters that cannot be seen; rename it to use the theme".to_owned());
    }
    match fs::metadata(path) {
        Err(error) => return Some(format!("{error}; correct or remove it")),
        Ok(metadata) if !metadata.is_file() => {
            return Some("it is not a file; rename or remove it".to_owned());
        }
        Ok(_) => {}
    }
    let name = path.file_stem()?.to_str().filter(|name| BUILTIN_NAMES.contains(name))?;
    Some(format!("\"{name}\" is a built-in theme, which is used instead; rename the file to use it"))
}

/// A theme file, or what a directory has under names of theme files, sorted.
fn files_at(path: &Path) -> Vec<PathBuf> {
    let has_name = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
    if has_name(path) && path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| has_name(path)).collect();
    files.sort();
    files.truncate(MAX_THEMES);
    files
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::config::{LiveSettings, ProjectSettings};

    use super::*;

    /// Directories of a user and a project with themes.
    struct World {
        folder: tempfile::TempDir,
        named: ResourceOptions,
    }

    impl World {
        /// `files` are themes below the folder; each has its path as its name.
        fn new(files: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                let path = folder.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let mut theme: Value =
                    serde_json::from_str(include_str!("../../../themes/dark.json")).unwrap();
                theme["name"] = file.replace('/', ":").into();
                fs::write(path, theme.to_string()).unwrap();
            }
            Self { folder, named: ResourceOptions::default() }
        }

        fn write_settings(&self, file: &str, settings: &str) {
            let path = self.folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, settings).unwrap();
        }

        /// What `of` finds, with the project's settings if it is trusted.
        fn with<T>(&self, trusted: bool, of: impl FnOnce(&ThemePlaces<'_>) -> T) -> T {
            let root = self.folder.path();
            let agent = root.join("agent");
            let env =
                Env::of(&[("PI_CODING_AGENT_DIR", agent.to_str().unwrap()), ("COLORTERM", "truecolor")]);
            let dirs = Dirs::new(&env);
            let (live, problems) = LiveSettings::load(dirs.settings_file(), []);
            assert!(problems.is_empty(), "{problems:?}");
            if trusted {
                live.use_project(ProjectSettings::load(&root.join("work")).0);
            }
            let (looks, project) = (Looks { env: &env, dirs: &dirs }, root.join("work"));
            let project = trusted.then_some(project.as_path());
            of(&ThemePlaces { looks: &looks, settings: &live.get(), project, named: &self.named })
        }

        /// The name in the file of the theme that counts, and what is wrong.
        fn theme(&self, trusted: bool, name: &str, colors: &TerminalColors) -> (String, Vec<String>) {
            let mut problems = Vec::new();
            let settings = Settings { theme: name.to_owned(), ..Settings::default() };
            let theme = self.with(trusted, |places| places.theme(&settings, colors, &mut problems));
            (theme.name().to_owned(), problems)
        }
    }

    fn names(themes: &[OwnTheme]) -> Vec<&str> {
        themes.iter().map(|theme| theme.name.as_str()).collect()
    }

    fn found(name: &str) -> (String, Vec<String>) {
        (name.to_owned(), Vec::new())
    }

    #[test]
    fn themes_of_all_places_are_listed_and_filtered() {
        let world = World::new(&["agent/themes/a.json", "agent/themes/b.json", "more/c.json", "one.json"]);
        let more = world.folder.path().join("more");
        let settings = serde_json::json!({ "themes": [more, "../one.json", "!b.json"] });
        world.write_settings("agent/settings.json", &settings.to_string());
        let mut names = Vec::new();
        world.with(false, |places| names.extend(places.list().into_iter().map(|theme| theme.name)));
        assert_eq!(names[names.len() - 3..], ["a", "c", "one"]);
        assert!(
            names.iter().any(|name| name == "dark") && !names.iter().any(|name| name == "b"),
            "{names:?}"
        );
    }

    #[test]
    fn the_nearest_file_of_a_name_counts_and_a_project_needs_trust() {
        let files = ["agent/themes/x.json", "set/x.json", "work/.pi/themes/x.json", "flag/x.json"];
        let mut world = World::new(&files);
        let origin = |world: &World, trusted| world.with(trusted, |places| places.own()[0].origin);
        let no = TerminalColors::default();
        assert_eq!(world.theme(false, "x", &no), found("agent:themes:x.json"));
        world.write_settings("agent/settings.json", r#"{ "themes": ["../set"] }"#);
        assert_eq!(world.theme(false, "x", &no), found("set:x.json"));
        let origins = [false, true].map(|trusted| origin(&world, trusted));
        assert_eq!(origins, [ResourceOrigin::User, ResourceOrigin::Project]);
        assert_eq!(world.theme(true, "x", &no), found("work:.pi:themes:x.json"));
        world.write_settings("work/.pi/settings.json", r#"{ "themes": ["../../flag/x.json"] }"#);
        assert_eq!(world.theme(true, "x", &no), found("flag:x.json"));
        world.named.paths = vec![world.folder.path().join("flag/x.json")];
        assert_eq!(world.theme(false, "x", &no), found("flag:x.json"));
        assert_eq!(origin(&world, true), ResourceOrigin::CommandLine);
    }

    #[test]
    fn a_pair_follows_the_terminal() {
        let world = World::new(&["agent/themes/day.json", "agent/themes/night.json"]);
        let on = |background| TerminalColors { background: Some(background), ..TerminalColors::default() };
        assert_eq!(world.theme(false, "day/night", &on([255; 3])), found("agent:themes:day.json"));
        assert_eq!(world.theme(false, "day/night", &on([0; 3])), found("agent:themes:night.json"));
        assert_eq!(world.theme(false, "light/dark", &on([0; 3])).0, "dark");
    }

    #[test]
    fn broken_and_unknown_themes_are_named_with_line_and_suggestion() {
        let world = World::new(&["agent/themes/good.json", "agent/themes/color.json"]);
        let folder = world.folder.path().join("agent/themes");
        fs::write(folder.join("cut.json"), "{\n  \"name\": \"cut\",\n").unwrap();
        let text = fs::read_to_string(folder.join("color.json")).unwrap();
        let mut theme: Value = serde_json::from_str(&text).unwrap();
        theme["colors"]["accent"] = "no colour".into();
        let text = serde_json::to_string_pretty(&theme).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let line = 1 + lines.iter().rposition(|line| line.contains("no colour")).unwrap();
        fs::write(folder.join("color.json"), &text).unwrap();
        let shown = folder.display();
        let color = format!(
            "theme \"color\": {shown}/color.json:{line}: colors.accent: \"no colour\" is neither a colour nor a variable of this theme"
        );
        let cut = format!("theme \"cut\": {shown}/cut.json: theme is not valid JSON: EOF");
        world.with(false, |places| {
            let listed = places.list();
            let broken: Vec<&str> =
                listed.iter().filter(|theme| theme.problem.is_some()).map(|theme| &*theme.name).collect();
            assert_eq!(broken, ["color", "cut"]);
            assert_eq!(names(&places.own()), ["good"]);
            let problems = places.problems("good/drak");
            let [unknown, first, second] = &problems[..] else { panic!("{problems:?}") };
            assert_eq!(
                *unknown,
                format!("theme \"drak\": there is no {shown}/drak.json; did you mean \"dark\"?")
            );
            assert_eq!(*first, color);
            assert!(second.starts_with(&cut), "{second}");
            // The theme in use is reported where it is read.
            assert_eq!(places.problems_of_others("color/cut"), [""; 0]);
            assert_eq!(places.problems_of_others("color").len(), 1);
        });
        let (name, problems) = world.theme(false, "color", &TerminalColors::default());
        assert_eq!((name.as_str(), problems), ("system", vec![format!("{color}; using the system theme")]));
    }

    #[test]
    fn a_theme_whose_name_cannot_be_seen_is_named_and_not_offered() {
        let hidden = ["my own\nx.json", "e\u{202e}vil\u{1b}]0;x.json"];
        let files = hidden.map(|name| format!("agent/themes/{name}"));
        let world = World::new(&["agent/themes/a b.json", &files[0], &files[1]]);
        world.with(false, |places| {
            assert_eq!(names(&places.own()), ["a b"]);
            let listed = places.list();
            assert_eq!(listed.iter().filter(|theme| !BUILTIN_NAMES.contains(&&*theme.name)).count(), 1);
            for problems in [places.problems("dark"), places.problems_of_others("dark")] {
                let [first, second] = &problems[..] else { panic!("{problems:?}") };
                assert!(first.contains("/e<U+202E>vil<U+001B>]0;x.json: its name has characters"), "{first}");
                assert!(second.contains("/my own<U+000A>x.json: its name has characters"), "{second}");
            }
        });
        let (name, problems) = world.theme(false, "my own\nx", &TerminalColors::default());
        assert_eq!((name.as_str(), problems.len()), ("system", 1), "{problems:?}");
    }

    #[test]
    fn what_is_no_theme_is_named_with_what_to_do() {
        let world = World::new(&["agent/themes/dark.json", "agent/themes/mine.json"]);
        let folder = world.folder.path().join("agent/themes");
        fs::create_dir(folder.join("folder.json")).unwrap();
        std::os::unix::fs::symlink("/nowhere/x.json", folder.join("link.json")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("pipe.json"), rustix::fs::Mode::RWXU).unwrap();
        world.with(false, |places| {
            assert_eq!(names(&places.own()), ["mine"]);
            let shown = folder.display().to_string();
            let expected = [
                "dark.json: \"dark\" is a built-in theme, which is used instead; rename the file to use it",
                "folder.json: it is not a file; rename or remove it",
                "link.json: No such file or directory (os error 2); correct or remove it",
                "pipe.json: it is not a file; rename or remove it",
            ];
            for problems in [places.problems("mine"), places.problems_of_others("mine")] {
                let problems: Vec<&str> =
                    problems.iter().map(|problem| &problem[shown.len() + 1..]).collect();
                assert_eq!(problems, expected);
            }
        });
    }

    #[test]
    fn many_themes_that_cannot_be_used_are_counted() {
        let names: Vec<String> = (10..30).map(|n| format!("agent/themes/{n}.json")).collect();
        let world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
        names.iter().for_each(|name| fs::write(world.folder.path().join(name), "{}").unwrap());
        let problems = world.with(false, |places| places.problems_of_others("dark"));
        assert_eq!(problems.len(), MAX_PROBLEMS + 1);
        assert_eq!(problems[MAX_PROBLEMS], "14 more themes cannot be used; pi doctor names them");
        assert_eq!(world.with(false, |places| places.problems("dark")).len(), names.len());
    }

    #[test]
    fn theme_may_begin_with_a_byte_order_mark() {
        let world = World::new(&["agent/themes/x.json"]);
        let path = world.folder.path().join("agent/themes/x.json");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("\u{feff}{text}")).unwrap();
        assert_eq!(world.theme(false, "x", &TerminalColors::default()), found("agent:themes:x.json"));
    }

    #[test]
    fn a_place_without_a_theme_is_named() {
        let mut world = World::new(&["agent/themes/a.json"]);
        world.write_settings("agent/settings.json", r#"{ "themes": ["nowhere", "!x["] }"#);
        world.named.paths = vec![world.folder.path().join("gone.json")];
        let (name, problems) = world.theme(false, "missing", &TerminalColors::default());
        assert_eq!((name.as_str(), problems.len()), ("system", 4), "{problems:?}");
        let parts = ["--theme ", "\"themes\": error parsing glob", "\"themes\": ", "theme \"missing\": "];
        for (problem, part) in problems.iter().zip(parts) {
            assert!(problem.contains(part), "{problem}");
        }
        assert!(problems[2].contains("nowhere: no theme there"), "{problems:?}");
        // Whatever theme is in use.
        let others = world.with(false, |places| places.problems_of_others("dark"));
        assert_eq!(others, problems[..3]);
        world.named.only_paths = true;
        assert_eq!(world.theme(false, "a", &TerminalColors::default()).1.len(), 2);
    }
}
