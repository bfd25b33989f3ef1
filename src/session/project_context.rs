//! Project and user files that shape a session: instruction files,
//! skills, prompt templates, and whether the folder is trusted.
//!
//! Everything is read when a session is opened and when trust is decided. `resources`
//! and `config` know where to look.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{
    EffectiveSettings, ProjectContents, ProjectSettings, Trust, TrustDefault, TrustFile, TrustPolicy,
    TrustedContents, protected_resources,
};
use crate::util::{parts, paths};

use super::event::NoticeLevel;
use super::resources::{
    ContextFile, ContextFiles, InstructionFile, PromptFiles, PromptTemplate, ResourceFilter, ResourceOrigin,
    Skill, SkillPlaces, TemplatePlaces, context_files, load_skills, load_templates, prompt_files,
    prompt_paths, skill_folders,
};
use super::services::Services;
use super::state::ProjectState;

/// The user's trust decisions until the program ends.
pub(super) type TrustOverrides = HashMap<PathBuf, TrustOverride>;

/// A decision about a project as it was then.
#[derive(Debug, Clone)]
pub(super) struct TrustOverride {
    pub(super) is_trusted: bool,
    pub(super) contents: ProjectContents,
}

pub(super) struct ProjectContext {
    pub(super) context_files: Vec<ContextFile>,
    pub(super) instructions: Arc<[InstructionFile]>,
    pub(super) prompt_files: PromptFiles,
    /// Sorted by name.
    pub(super) skills: Arc<[Skill]>,
    /// Sorted by name.
    pub(super) templates: Arc<[PromptTemplate]>,
    pub(super) state: ProjectState,
    /// The files that need trust, as they were read.
    pub(super) contents: ProjectContents,
    /// Empty unless the project is trusted.
    pub(super) settings: ProjectSettings,
    /// Problems with settings, skills, templates, instruction files or `trust.json`, one line each;
    /// those of flags first.
    pub(super) problems: Vec<String>,
    /// A notice about content left out because the project is not trusted.
    pub(super) untrusted: Option<(NoticeLevel, String)>,
}

impl ProjectContext {
    /// Reads the context of `cwd`; `user` are the settings without those of a project.
    /// Blocks.
    pub(super) fn read(
        services: &Services,
        user: &EffectiveSettings,
        cwd: &Path,
        overrides: &TrustOverrides,
    ) -> Self {
        let dirs = &services.dirs;
        let home = dirs.home.as_deref();
        let Decided { trust, context, protected, contents, changed, mut problems } =
            decide(services, user, cwd, overrides);
        problems.extend(context.problems);
        let links = context.links.into();
        let mut project = ProjectState { trust, protected: protected.into(), links, changed: changed.into() };
        let has_skills = !services.skills.only_paths && project.skill_folders().next().is_some();
        let has_templates = !services.templates.only_paths && project.template_folder().is_some();
        let has_settings = project.settings_file().is_some();
        let has_prompt = project.prompt_files().next().is_some();
        let has_any = has_skills || has_templates || has_settings || has_prompt || !project.links.is_empty();
        if trust == Trust::Undecided && !has_any {
            // The project has nothing else that needs trust, so there is nothing to ask.
            project.trust = Trust::Unasked;
        }
        let (settings, wrong) =
            if trust.is_trusted() { ProjectSettings::load(cwd) } else { Default::default() };
        problems.extend(wrong);
        let (prompt_files, wrong) = prompt_files(&dirs.agent, cwd, trust.is_trusted());
        problems.extend(wrong);
        let skill_places = SkillPlaces {
            agent: &dirs.agent,
            home,
            cwd,
            settings: &user.values.skills,
            project_settings: &settings.skills(),
            named: &services.skills.paths,
            only_named: services.skills.only_paths,
            with_project: trust.is_trusted(),
        };
        let template_places = TemplatePlaces {
            agent: &dirs.agent,
            home,
            cwd,
            settings: &user.values.prompts,
            project_settings: &settings.prompts(),
            named: &services.templates.paths,
            only_named: services.templates.only_paths,
            with_project: trust.is_trusted(),
        };
        let ((templates, wrong_templates), (skills, wrong_skills)) =
            parts::both(&|| load_templates(&template_places), || load_skills(&skill_places));
        let of_skills = wrong_skills.of_flags.iter().map(ToString::to_string);
        let of_templates = wrong_templates.of_flags.iter().map(ToString::to_string);
        problems.splice(0..0, of_skills.chain(of_templates));
        problems.extend(wrong_skills.others.iter().map(ToString::to_string));
        problems.extend(wrong_templates.others.iter().map(ToString::to_string));
        let untrusted = untrusted(&project, has_skills, has_templates, cwd, home);
        let instructions = context.files.iter().map(|ContextFile { path, .. }| {
            let is_own = path.starts_with(&dirs.agent);
            let origin = if is_own { ResourceOrigin::User } else { ResourceOrigin::Project };
            InstructionFile { path: path.clone(), origin }
        });
        let instructions = instructions.collect();
        Self {
            context_files: context.files,
            instructions,
            prompt_files,
            skills: skills.into(),
            templates: templates.into(),
            state: project,
            contents,
            settings,
            problems,
            untrusted,
        }
    }
}

/// What shapes a session in a folder, for a report.
#[derive(Debug, Default)]
pub struct ProjectFacts {
    /// What is wrong with settings, instructions, skills and templates, one line each.
    pub problems: Vec<String>,
    /// The files and folders that it reads, as far as they exist, with what they are.
    pub files: Vec<(&'static str, PathBuf)>,
}

/// What a session in `cwd` would read; `trust` is the decision of a session that is open. Blocks.
pub fn project_facts(services: &Services, cwd: &Path, trust: Option<bool>) -> ProjectFacts {
    let mut services = services.clone();
    services.trust.flag = trust.or(services.trust.flag);
    let context = ProjectContext::read(&services, &services.settings.get(), cwd, &TrustOverrides::default());
    let home = services.dirs.home.as_deref();
    let problems = context.problems.iter().map(|problem| paths::with_tilde(problem, home)).collect();
    ProjectFacts { problems, files: files(&services, cwd, &context) }
}

fn files(services: &Services, cwd: &Path, context: &ProjectContext) -> Vec<(&'static str, PathBuf)> {
    let (agent, home) = (&services.dirs.agent, services.dirs.home.as_deref());
    let (is_trusted, folder) = (context.state.trust.is_trusted(), cwd.join(".pi"));
    let mut files = Vec::new();
    if is_trusted {
        files.push(("project settings", folder.join("settings.json")));
    }
    files.extend(context.context_files.iter().map(|file| ("instructions", file.path.clone())));
    let prompts = prompt_paths(agent, cwd, is_trusted);
    files.extend(prompts.into_iter().map(|path| ("system prompt", path)));
    if !services.skills.only_paths {
        let folders = skill_folders(agent, home, cwd, is_trusted);
        files.extend(folders.into_iter().map(|path| ("skills", path)));
    }
    files.extend(services.skills.paths.iter().map(|path| ("skills", path.clone())));
    if !services.templates.only_paths {
        files.push(("prompt templates", agent.join("prompts")));
        files.extend(is_trusted.then(|| ("prompt templates", folder.join("prompts"))));
    }
    files.extend(services.templates.paths.iter().map(|path| ("prompt templates", path.clone())));
    files.retain(|(_, path)| path.exists());
    files
}

/// Whether a project is trusted, with what was read to find out.
struct Decided {
    trust: Trust,
    context: ContextFiles,
    protected: Vec<PathBuf>,
    contents: ProjectContents,
    /// Files that changed since the user decided.
    changed: Vec<String>,
    problems: Vec<String>,
}

fn decide(services: &Services, user: &EffectiveSettings, cwd: &Path, overrides: &TrustOverrides) -> Decided {
    let dirs = &services.dirs;
    let trust_file = TrustFile::load(dirs.trust_file());
    let mut problems: Vec<String> = trust_file.problem().map(str::to_owned).into_iter().collect();
    let own = overrides.get(cwd);
    let flag = own.map(|own| own.is_trusted).or(services.trust.flag);
    // An unreadable file may contain a refusal.
    let default = match (trust_file.problem(), user.values.project_trust) {
        (Some(_), TrustDefault::Always) => TrustDefault::Ask,
        (_, default) => default,
    };
    let policy = TrustPolicy { flag, default, can_ask: services.trust.can_ask };
    let saved = trust_file.nearest(cwd);
    let mut trust = policy.decide(saved);
    let read = |trust: Trust| match services.prompt.no_context_files {
        true => ContextFiles::default(),
        false => context_files(&dirs.agent, cwd, trust.is_trusted()),
    };
    let mut context = read(trust);
    let mut protected = protected_resources(cwd, dirs.home.as_deref());
    let named = named_elsewhere(cwd, dirs.home.as_deref(), &protected);
    protected.extend(named);
    let files = protected.iter().chain(context.links.iter().map(|link| &link.path));
    let contents = ProjectContents::read(cwd, files.map(PathBuf::as_path));
    let mut changed = Vec::new();
    if trust.is_trusted() {
        let (list, problem) = changed_files(services, cwd, own, saved, &contents);
        problems.extend(problem);
        changed = list;
    }
    if !changed.is_empty() {
        trust = policy.ask();
        context = read(trust);
    }
    Decided { trust, context, protected, contents, changed, problems }
}

/// What the project's settings name outside the `protected` paths: their content steers the
/// model too, so it needs the same trust.
fn named_elsewhere(cwd: &Path, home: Option<&Path>, protected: &[PathBuf]) -> Vec<PathBuf> {
    let folder = cwd.join(".pi");
    if !protected.contains(&folder.join("settings.json")) {
        return Vec::new();
    }
    let (settings, _) = ProjectSettings::load(cwd);
    let entries = [settings.skills(), settings.prompts()].concat();
    let named = ResourceFilter::locations(&entries, &folder, home).into_iter();
    named.filter(|path| path.exists() && !protected.iter().any(|known| path.starts_with(known))).collect()
}

/// The files of a trusted project that changed since the user decided, and a problem with
/// the record. Flags and settings trust whatever a project contains.
fn changed_files(
    services: &Services,
    cwd: &Path,
    own: Option<&TrustOverride>,
    saved: Option<bool>,
    contents: &ProjectContents,
) -> (Vec<String>, Option<String>) {
    if let Some(own) = own {
        return (contents.changed_since(&own.contents), None);
    }
    if services.trust.flag.is_some() || saved != Some(true) {
        return (Vec::new(), None);
    }
    let records = TrustedContents::load(services.dirs.trusted_contents_file());
    match records.of(cwd) {
        Some(before) => (contents.changed_since(&before), None),
        // Trusted with a folder above, by the original, or by an older version.
        None if *contents == ProjectContents::default() => (Vec::new(), None),
        None => (Vec::new(), records.save(cwd, contents).err().map(|error| error.to_string())),
    }
}

/// A notice about content left out, unless the user is being asked about it.
fn untrusted(
    project: &ProjectState,
    with_skills: bool,
    with_templates: bool,
    cwd: &Path,
    home: Option<&Path>,
) -> Option<(NoticeLevel, String)> {
    let links = project.links.iter().map(|link| {
        let (path, target) = (shown(&link.path, cwd, home), paths::display(&link.target, home));
        format!("{path}, which links to {target},")
    });
    let folders = project.skill_folders().filter(|_| with_skills);
    let folders: Vec<String> = folders.map(|folder| shown(folder, cwd, home)).collect();
    let skills = (!folders.is_empty()).then(|| format!("skills in {}", folders.join(", ")));
    let templates = project.template_folder().filter(|_| with_templates);
    let templates = templates.map(|folder| format!("prompt templates in {}", shown(folder, cwd, home)));
    let settings = project.settings_file().map(|file| format!("settings in {}", shown(file, cwd, home)));
    let prompts: Vec<String> = project.prompt_files().map(|file| shown(file, cwd, home)).collect();
    let prompts = (!prompts.is_empty()).then(|| format!("system prompts in {}", prompts.join(", ")));
    let several: Vec<String> = [skills, templates, settings, prompts].into_iter().flatten().collect();
    let has_several = !several.is_empty();
    let left_out: Vec<String> = several.into_iter().chain(links).collect();
    let (are, them) = if has_several || left_out.len() > 1 { ("are", "them") } else { ("is", "it") };
    let left_out = left_out.join(" and ");
    if left_out.is_empty() {
        return None;
    }
    match project.trust {
        Trust::Trusted | Trust::Undecided => None,
        Trust::Unasked => {
            let why = match &project.changed[..] {
                [] => "this folder isn't trusted".to_owned(),
                [one] => format!("{one} changed since you trusted this folder"),
                [one, others @ ..] => {
                    format!("{one} and {} more changed since you trusted this folder", others.len())
                }
            };
            let text = format!("{left_out} {are} not loaded because {why}; --approve loads {them}");
            Some((NoticeLevel::Warning, text))
        }
        Trust::Refused => {
            let left_out = if has_several { capitalised(&left_out) } else { left_out };
            Some((
                NoticeLevel::Info,
                format!(
                    "{left_out} {are} not loaded because this folder isn't trusted; use /trust or --approve"
                ),
            ))
        }
    }
}

/// `text` with its first letter in upper case.
fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// `path` relative to `cwd`, for display.
fn shown(path: &Path, cwd: &Path, home: Option<&Path>) -> String {
    match path.strip_prefix(cwd) {
        Ok(relative) => relative.display().to_string(),
        Err(_) => paths::display(path, home),
    }
}

#[cfg(test)]
mod tests {
    use super::super::resources::OutsideLink;
    use super::*;

    #[test]
    fn untrusted_content_is_reported_unless_the_user_is_asked() {
        let check = |trust, protected: &[&str], links: &[&str], expected: Option<(NoticeLevel, &str)>| {
            let protected: Vec<PathBuf> = protected.iter().map(PathBuf::from).collect();
            let link = |path: &&str| OutsideLink { path: path.into(), target: "/h/secret".into() };
            let links: Vec<OutsideLink> = links.iter().map(link).collect();
            let project = ProjectState {
                trust,
                protected: protected.into(),
                links: links.into(),
                ..ProjectState::default()
            };
            let said = untrusted(&project, true, true, Path::new("/h/p"), Some(Path::new("/h")));
            assert_eq!(said.as_ref().map(|(level, text)| (*level, text.as_str())), expected, "{trust:?}");
        };
        let both = ["/h/p/.pi/skills", "/h/.agents/skills"];
        let text = "skills in .pi/skills, ~/.agents/skills are not loaded because this folder isn't \
                    trusted; --approve loads them";
        check(Trust::Unasked, &both, &[], Some((NoticeLevel::Warning, text)));
        let text = "Skills in .pi/skills, ~/.agents/skills are not loaded because this folder isn't \
                    trusted; use /trust or --approve";
        check(Trust::Refused, &both, &[], Some((NoticeLevel::Info, text)));
        check(Trust::Trusted, &both, &["/h/p/AGENTS.md"], None);
        check(Trust::Undecided, &both, &["/h/p/AGENTS.md"], None);
        check(Trust::Unasked, &["/h/p/.pi/mcp.json"], &[], None);
        let text = "Prompt templates in .pi/prompts are not loaded because this folder isn't trusted; use \
                    /trust or --approve";
        check(Trust::Refused, &["/h/p/.pi/prompts"], &[], Some((NoticeLevel::Info, text)));
        let text = "system prompts in .pi/SYSTEM.md are not loaded because this folder isn't trusted; \
                    --approve loads them";
        check(Trust::Unasked, &["/h/p/.pi/SYSTEM.md"], &[], Some((NoticeLevel::Warning, text)));
        let text = "settings in .pi/settings.json are not loaded because this folder isn't trusted; \
                    --approve loads them";
        check(Trust::Unasked, &["/h/p/.pi/settings.json"], &[], Some((NoticeLevel::Warning, text)));
        let text = "AGENTS.md, which links to ~/secret, is not loaded because this folder isn't \
                    trusted; --approve loads it";
        check(Trust::Unasked, &[], &["/h/p/AGENTS.md"], Some((NoticeLevel::Warning, text)));
        let text = "Skills in .pi/skills and AGENTS.md, which links to ~/secret, are not loaded because \
                    this folder isn't trusted; use /trust or --approve";
        check(Trust::Refused, &both[..1], &["/h/p/AGENTS.md"], Some((NoticeLevel::Info, text)));
    }
}
