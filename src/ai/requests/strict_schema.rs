//! The strict form of a tool's schema, which a service can enforce.
//!
//! Services that enforce schemas support a subset of JSON Schema: every
//! object lists all its properties as required and allows no others. Optional
//! properties are therefore nullable, and argument validation treats `null` as
//! absent. [`strict_form`] converts one schema, or returns why it cannot;
//! [`StrictTools`] decides which tools of a request are converted. Pure. The
//! invariant: the tool's own schema allows everything the strict form allows, except
//! `null` for an optional property. The same tools always get the same forms, so
//! that requests keep the same beginning.

use crate::ai::models::Dialect;
use serde_json::{Map, Value, json};

use crate::ai::messages::{ConstrainedSampling, Strictness, ToolDeclaration};

/// Schemas nested deeper have no strict form; this is OpenAI's limit.
const MAX_DEPTH: usize = 10;

/// Schemas with more parts have no strict form either. Referenced parts count at each
/// use.
const MAX_PARTS: u32 = 2_000;

/// Keywords that no service enforces, in addition to those [`Walk::node`] checks.
const REFUSED: &[&str] = &[
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "unevaluatedItems",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "uniqueItems",
    "minLength",
    "maxLength",
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "$dynamicRef",
    "$recursiveRef",
];

impl Dialect {
    /// Further keywords that this service does not enforce.
    fn refused(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &[],
            Self::Claude => {
                &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems"]
            }
        }
    }

    /// The supported values of `format`.
    fn formats(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => {
                &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]
            }
            Self::Claude => {
                &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]
            }
        }
    }

    /// The maximum number of tools, and of parameters with a union of types, per request.
    ///
    /// The numbers are from Anthropic's error messages. A strict form has no optional
    /// parameters, so the limit for those cannot be reached.
    fn limits(self) -> (usize, usize) {
        match self {
            Self::OpenAi => (usize::MAX, usize::MAX),
            Self::Claude => (20, 16),
        }
    }
}

/// A schema that can be enforced.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ai) struct StrictForm {
    pub(in crate::ai) schema: Value,
    /// The number of parameters with a union of types.
    n_unions: usize,
}

/// Why a schema has no strict form, for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::ai) struct Obstacle(String);

/// A tool requires enforcement that is impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tool \"{tool}\" requires a strict schema: {reason}")]
pub(in crate::ai) struct Unmet {
    tool: String,
    reason: String,
}

/// The tools of one request that are sent in strict form.
#[derive(Debug, Default)]
pub(in crate::ai) struct StrictTools<'a>(Vec<(&'a ToolDeclaration, Value)>);

impl<'a> StrictTools<'a> {
    /// Selects among `tools`, in the order of their declaration, until the service's
    /// limits are reached. `only_required` skips tools that merely prefer a strict form.
    ///
    /// # Errors
    /// If a tool requires enforcement the service cannot provide.
    pub(in crate::ai) fn of(
        tools: impl IntoIterator<Item = &'a ToolDeclaration>,
        dialect: Dialect,
        only_required: bool,
    ) -> Result<Self, Unmet> {
        let (mut tools_left, mut unions_left) = dialect.limits();
        let mut strict_tools = Vec::new();
        for tool in tools {
            let strict = match tool.constrained_sampling {
                Some(ConstrainedSampling::JsonSchema { strict, .. }) => strict,
                Some(ConstrainedSampling::Grammar { .. } | ConstrainedSampling::Unknown(_)) | None => {
                    continue;
                }
            };
            if only_required && strict == Strictness::Prefer {
                continue;
            }
            let form = strict_form(&tool.parameters, dialect).map_err(|obstacle| obstacle.0);
            let form = form.and_then(|form| {
                let fits = tools_left > 0 && form.n_unions <= unions_left;
                if fits { Ok(form) } else { Err("the service enforces no more in one request".to_owned()) }
            });
            match form {
                Ok(form) => {
                    tools_left -= 1;
                    unions_left -= form.n_unions;
                    strict_tools.push((tool, form.schema));
                }
                Err(_) if strict == Strictness::Prefer => {}
                Err(reason) => return Err(Unmet { tool: tool.name.clone(), reason }),
            }
        }
        Ok(Self(strict_tools))
    }

    /// The enforced schema for this declaration of a tool.
    pub(in crate::ai) fn schema(&self, tool: &ToolDeclaration) -> Option<&Value> {
        let found = self.0.iter().find(|(strict, _)| std::ptr::eq(*strict, tool));
        found.map(|(_, schema)| schema)
    }
}

/// The strict form of `schema`, the schema of a tool's arguments.
pub(in crate::ai) fn strict_form(schema: &Value, dialect: Dialect) -> Result<StrictForm, Obstacle> {
    let Some(root) = schema.as_object() else {
        return Err(Obstacle("the schema is no object".to_owned()));
    };
    if root.get("type").and_then(Value::as_str) != Some("object") {
        return Err(Obstacle("the type of the arguments is not \"object\"".to_owned()));
    }
    if root.contains_key("anyOf") {
        return Err(Obstacle("the arguments are a choice of forms".to_owned()));
    }
    let mut walk = Walk { root: schema, dialect, n_unions: 0, n_parts: 0, following: Vec::new() };
    let mut strict = walk.node(schema, 0, true)?;
    if let Some(root) = strict.as_object_mut() {
        root.entry("properties").or_insert_with(|| json!({}));
        root.entry("required").or_insert_with(|| json!([]));
    }
    Ok(StrictForm { schema: strict, n_unions: walk.n_unions })
}

struct Walk<'a> {
    /// The document that `$ref` refers to.
    root: &'a Value,
    dialect: Dialect,
    n_unions: usize,
    n_parts: u32,
    /// The references being followed, to detect cycles.
    following: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn node(&mut self, schema: &'a Value, depth: usize, is_root: bool) -> Result<Value, Obstacle> {
        let refuse = |what: &str| Err(Obstacle(what.to_owned()));
        let Some(node) = schema.as_object() else {
            return refuse("a part of the schema is true or false");
        };
        if depth > MAX_DEPTH {
            return refuse("the schema is nested too deeply");
        }
        self.n_parts += 1;
        if self.n_parts > MAX_PARTS {
            return refuse("the schema has too many parts");
        }
        let refused = REFUSED.iter().chain(self.dialect.refused()).find(|key| node.contains_key(**key));
        if let Some(key) = refused {
            return Err(Obstacle(format!("{key} cannot be enforced")));
        }
        if let Some(format) = node.get("format")
            && !format.as_str().is_some_and(|format| self.dialect.formats().contains(&format))
        {
            return Err(Obstacle(format!("the format {format} cannot be enforced")));
        }
        if let Some(least) = node.get("minItems")
            && self.dialect == Dialect::Claude
            && least.as_u64().is_none_or(|least| least > 1)
        {
            return refuse("minItems above 1 cannot be enforced");
        }
        let says_what = ["type", "anyOf", "enum", "$ref"].iter().any(|key| node.contains_key(*key));
        if !says_what {
            return refuse("a part of the schema allows anything");
        }
        let mut strict = node.clone();
        // OpenAI rejects the keyword, and a strict call contains every property anyway.
        strict.shift_remove("default");
        if let Some(reference) = node.get("$ref") {
            self.reference(reference, depth)?;
        }
        if let Some(branches) = node.get("anyOf") {
            let Some(branches) = branches.as_array() else { return refuse("anyOf is no list") };
            self.n_unions += 1;
            let branches: Result<Vec<Value>, Obstacle> =
                branches.iter().map(|branch| self.node(branch, depth + 1, false)).collect();
            strict.insert("anyOf".to_owned(), Value::Array(branches?));
        }
        if node.get("type").is_some_and(Value::is_array) {
            self.n_unions += 1;
        }
        if let Some(items) = node.get("items") {
            strict.insert("items".to_owned(), self.node(items, depth + 1, false)?);
        } else if has_type(node, "array") {
            return refuse("the items of a list may be anything");
        }
        if has_type(node, "object") || node.contains_key("properties") {
            self.object(node, &mut strict, depth, is_root)?;
        }
        for definitions in ["$defs", "definitions"] {
            let Some(named) = node.get(definitions) else { continue };
            let Some(named) = named.as_object() else { return refuse("the definitions are no object") };
            let mut forms = Map::new();
            // They count where they are used.
            let n_unions = self.n_unions;
            for (name, definition) in named {
                forms.insert(name.clone(), self.node(definition, depth, false)?);
            }
            self.n_unions = n_unions;
            strict.insert(definitions.to_owned(), Value::Object(forms));
        }
        Ok(Value::Object(strict))
    }

    fn object(
        &mut self,
        node: &'a Map<String, Value>,
        strict: &mut Map<String, Value>,
        depth: usize,
        is_root: bool,
    ) -> Result<(), Obstacle> {
        let refuse = |what: &str| Err(Obstacle(what.to_owned()));
        if !has_type(node, "object") {
            return refuse("an object lacks its type");
        }
        let is_closed = match node.get("additionalProperties") {
            None => false,
            Some(Value::Bool(false)) => true,
            Some(_) => return refuse("an object may have properties of any name"),
        };
        let properties = match node.get("properties") {
            None => None,
            Some(Value::Object(properties)) => Some(properties),
            Some(_) => return refuse("the properties of an object are no object"),
        };
        if properties.is_none_or(Map::is_empty) && !is_closed && !is_root {
            return refuse("an object may have properties of any name");
        }
        let required: Vec<&str> = match node.get("required") {
            None => Vec::new(),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) => return refuse("the required properties are no list"),
        };
        if let Some(name) =
            required.iter().find(|name| !properties.is_some_and(|properties| properties.contains_key(**name)))
        {
            return Err(Obstacle(format!("the required property {name:?} is not described")));
        }
        let mut forms = Map::new();
        for (name, property) in properties.into_iter().flatten() {
            let mut form = self.node(property, depth + 1, false)?;
            if !required.contains(&name.as_str()) {
                let was_union = is_union(&form);
                form = nullable(form);
                self.n_unions += usize::from(is_union(&form) && !was_union);
            }
            forms.insert(name.clone(), form);
        }
        let names: Vec<Value> = forms.keys().map(|name| Value::from(name.as_str())).collect();
        strict.insert("properties".to_owned(), Value::Object(forms));
        strict.insert("required".to_owned(), Value::Array(names));
        strict.insert("additionalProperties".to_owned(), Value::Bool(false));
        Ok(())
    }

    /// Checks the target of a reference; its enforcement happens at its definition.
    fn reference(&mut self, reference: &'a Value, depth: usize) -> Result<(), Obstacle> {
        let refuse = |what: &str| Err(Obstacle(what.to_owned()));
        let Some(name) = reference.as_str() else { return refuse("a $ref is no text") };
        let is_local = ["#/$defs/", "#/definitions/"].iter().any(|start| name.starts_with(start));
        let target = name.strip_prefix('#').filter(|_| is_local).and_then(|path| self.root.pointer(path));
        let Some(target) = target else {
            return Err(Obstacle(format!("{name} is not defined in the schema")));
        };
        if self.following.contains(&name) {
            return Err(Obstacle(format!("{name} refers to itself")));
        }
        self.following.push(name);
        let followed = self.node(target, depth + 1, false);
        self.following.pop();
        followed.map(drop)
    }
}

fn has_type(node: &Map<String, Value>, kind: &str) -> bool {
    match node.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    }
}

fn is_union(schema: &Value) -> bool {
    schema.get("anyOf").is_some() || schema.get("type").is_some_and(Value::is_array)
}

/// `schema` or `null`.
fn nullable(schema: Value) -> Value {
    let null = || json!({"type": "null"});
    let Value::Object(mut node) = schema else { return schema };
    if let Some(Value::Array(branches)) = node.get_mut("anyOf") {
        if !branches.iter().any(|branch| branch.get("type").is_some_and(|kind| kind == "null")) {
            branches.push(null());
        }
        return Value::Object(node);
    }
    let is_plain = !["properties", "items", "const", "$ref"].iter().any(|key| node.contains_key(*key));
    if is_plain {
        match node.get_mut("type") {
            Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => {
                kinds.push(Value::from("null"));
            }
            Some(kind @ Value::String(_)) if kind != "null" => *kind = json!([kind.take(), "null"]),
            _ => {}
        }
        if let Some(Value::Array(choices)) = node.get_mut("enum")
            && !choices.contains(&Value::Null)
        {
            choices.push(Value::Null);
        }
        return Value::Object(node);
    }
    let description = node.shift_remove("description");
    let mut choice = Map::new();
    choice.extend(description.map(|text| ("description".to_owned(), text)));
    choice.insert("anyOf".to_owned(), Value::Array(vec![Value::Object(node), null()]));
    Value::Object(choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &Value, dialect: Dialect, expected: &Result<Value, &str>) {
        let form = strict_form(schema, dialect);
        let form = form.map(|form| form.schema).map_err(|obstacle| obstacle.to_string());
        assert_eq!(form, expected.clone().map_err(str::to_owned), "{schema}");
    }

    /// The arguments schema with one optional property `x`.
    fn x(schema: Value) -> Value {
        json!({"type": "object", "properties": {"x": schema}})
    }

    #[test]
    fn all_is_required_and_what_was_optional_may_be_null() {
        let check = |schema: Value, expected: Value| {
            let expected = json!({"type": "object", "properties": {"x": expected}, "required": ["x"],
                "additionalProperties": false});
            check(&x(schema), Dialect::OpenAi, &Ok(expected));
        };
        check(
            json!({"type": "string", "description": "d"}),
            json!({"type": ["string", "null"], "description": "d"}),
        );
        check(json!({"type": ["string", "null"]}), json!({"type": ["string", "null"]}));
        check(
            json!({"type": "string", "enum": ["a"], "default": "a"}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        );
        check(json!({"enum": [1, null]}), json!({"enum": [1, null]}));
        check(
            json!({"type": "number", "const": 1}),
            json!({"anyOf": [{"type": "number", "const": 1}, {"type": "null"}]}),
        );
        check(
            json!({"anyOf": [{"type": "string"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        );
        check(
            json!({"type": "array", "description": "d", "items": {"type": "number"}}),
            json!({"description": "d", "anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]}),
        );
    }

    #[test]
    fn objects_inside_are_closed_too() {
        let inner = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "number"}}});
        let strict = json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": ["number", "null"]}},
            "additionalProperties": false});
        check(
            &json!({"type": "object", "required": ["l"], "properties": {"l": {"type": "array", "minItems": 1, "items": inner}}}),
            Dialect::Claude,
            &Ok(
                json!({"type": "object", "required": ["l"], "properties": {"l": {"type": "array", "minItems": 1, "items": strict}},
                "additionalProperties": false}),
            ),
        );
        check(
            &json!({"type": "object", "required": ["l"], "properties": {"l": {"$ref": "#/$defs/i"}}, "$defs": {"i": inner}}),
            Dialect::OpenAi,
            &Ok(
                json!({"type": "object", "required": ["l"], "properties": {"l": {"$ref": "#/$defs/i"}}, "$defs": {"i": strict},
                "additionalProperties": false}),
            ),
        );
        check(
            &json!({"type": "object"}),
            Dialect::OpenAi,
            &Ok(json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false})),
        );
    }

    #[test]
    fn what_cannot_be_enforced_is_named() {
        use Dialect::{Claude, OpenAi};
        let both = |schema: &Value, reason: &str| {
            check(schema, OpenAi, &Err(reason));
            check(schema, Claude, &Err(reason));
        };
        both(&json!(null), "the schema is no object");
        both(&json!({"properties": {}}), "the type of the arguments is not \"object\"");
        both(&json!({"type": "object", "anyOf": []}), "the arguments are a choice of forms");
        both(&json!({"type": "object", "patternProperties": {}}), "patternProperties cannot be enforced");
        both(
            &json!({"type": "object", "additionalProperties": {}}),
            "an object may have properties of any name",
        );
        both(
            &json!({"type": "object", "additionalProperties": true}),
            "an object may have properties of any name",
        );
        both(&json!({"type": "object", "required": ["y"]}), "the required property \"y\" is not described");
        both(&json!({"type": "object", "required": "y"}), "the required properties are no list");
        both(&json!({"type": "object", "properties": []}), "the properties of an object are no object");
        for any in [
            json!({}),
            json!({"const": 1}),
            json!({"type": "array", "items": {}}),
            json!({"description": "d"}),
        ] {
            both(&x(any), "a part of the schema allows anything");
        }
        both(&x(json!(true)), "a part of the schema is true or false");
        both(&x(json!({"type": "object"})), "an object may have properties of any name");
        both(&x(json!({"enum": [1], "properties": {}})), "an object lacks its type");
        both(&x(json!({"type": "array"})), "the items of a list may be anything");
        both(&x(json!({"oneOf": []})), "oneOf cannot be enforced");
        both(&x(json!({"anyOf": 1})), "anyOf is no list");
        both(&x(json!({"type": "string", "format": "regex"})), "the format \"regex\" cannot be enforced");
        both(&x(json!({"$ref": "#"})), "# is not defined in the schema");
        both(&x(json!({"$ref": "https://a.b"})), "https://a.b is not defined in the schema");
        both(&x(json!({"$ref": 1})), "a $ref is no text");
        let list = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}}});
        both(&list, "#/$defs/n refers to itself");
        let deep = (0..40).fold(json!({"type": "string"}), |inner, _| x(inner));
        both(&deep, "the schema is nested too deeply");
        let many = |name: u32| {
            let property = |n: u32| (n.to_string(), json!({"$ref": format!("#/$defs/{name}")}));
            json!({"type": "object", "properties": (0..9).map(property).collect::<Map<_, _>>()})
        };
        let mut wide = many(0);
        wide["$defs"] = json!({"0": many(1), "1": many(2), "2": many(3), "3": {"type": "string"}});
        both(&wide, "the schema has too many parts");

        let claude = |schema: Value, reason: &str| {
            assert!(strict_form(&x(schema.clone()), OpenAi).is_ok(), "{schema}");
            check(&x(schema), Claude, &Err(reason));
        };
        for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
            claude(json!({"type": "number", key: 1}), &format!("{key} cannot be enforced"));
        }
        let list = |key: &str, n: u64| json!({"type": "array", "items": {"type": "string"}, key: n});
        claude(list("maxItems", 3), "maxItems cannot be enforced");
        claude(list("minItems", 2), "minItems above 1 cannot be enforced");
    }

    fn tool(name: &str, strict: &str, parameters: &Value) -> ToolDeclaration {
        let tool = json!({"name": name, "parameters": parameters,
            "constrainedSampling": {"type": "json_schema", "strict": strict}});
        serde_json::from_value(tool).unwrap()
    }

    #[test]
    fn a_request_stays_within_the_limits_and_the_first_tools_count() {
        let check = |tools: &[ToolDeclaration], dialect, expected: usize| {
            let strict = StrictTools::of(tools, dialect, false).unwrap();
            let is_strict: Vec<bool> = tools.iter().map(|tool| strict.schema(tool).is_some()).collect();
            let expected: Vec<bool> = (0..tools.len()).map(|at| at < expected).collect();
            assert_eq!(is_strict, expected);
        };
        let no_choice = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
        let many: Vec<_> = (0..30).map(|n| tool(&format!("t{n}"), "prefer", &no_choice)).collect();
        check(&many, Dialect::Claude, 20);
        check(&many, Dialect::OpenAi, 30);
        // Three unions each; five times three is fifteen.
        let choices = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["string", "number"]},
            "c": {"anyOf": [{"type": "string"}, {"type": "number"}]}}});
        let many: Vec<_> = (0..9).map(|n| tool(&format!("t{n}"), "prefer", &choices)).collect();
        check(&many, Dialect::Claude, 5);
        check(&many, Dialect::OpenAi, 9);
    }

    #[test]
    fn a_tool_that_requires_it_has_the_last_word() {
        let check = |tool: ToolDeclaration, only_required, expected: Result<bool, &str>| {
            let strict = StrictTools::of([&tool], Dialect::Claude, only_required);
            let is_strict = strict.map(|strict| strict.schema(&tool).is_some());
            assert_eq!(is_strict.map_err(|unmet| unmet.to_string()), expected.map_err(str::to_owned));
        };
        let (fine, bad) = (json!({"type": "object"}), json!({"type": "object", "minProperties": 1}));
        check(tool("t", "prefer", &fine), false, Ok(true));
        check(tool("t", "prefer", &fine), true, Ok(false));
        check(tool("t", "require", &fine), true, Ok(true));
        check(tool("t", "prefer", &bad), false, Ok(false));
        check(
            tool("t", "require", &bad),
            false,
            Err("the tool \"t\" requires a strict schema: minProperties cannot be enforced"),
        );
    }
}
