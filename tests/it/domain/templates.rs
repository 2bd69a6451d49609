//! Templates: what they can say, what is refused, and what rendering may take.

use forms::domain::integration::template::{check, names, render};
use minijinja::context;

#[test]
fn templates_have_values_conditions_loops_and_a_few_filters() {
    let fields = vec![context! { title => "Name", text => "<Ann>" }, context! { title => "Age" }];
    let context =
        context! { form => context! { title => "Survey & more" }, fields, answers => context! { q1 => "x" } };
    for (source, expected) in [
        ("New: {{ form.title }}", "New: Survey & more"),
        ("{{ answers.q1 | upper }}{{ answers.q9 }}{{ form.none.none | default('-') }}", "X-"),
        (
            "{% for f in fields %}{{ f.title }}: {{ f.text | default('-') }}\n{% endfor %}",
            "Name: <Ann>\nAge: -\n",
        ),
        ("{% if answers.q1 == 'x' %}{{ fields | length }}{% else %}no{% endif %}", "2"),
        ("C++ ~ 2*3", "C++ ~ 2*3"),
    ] {
        assert_eq!(check(source), Ok(()), "{source}");
        assert_eq!(render(source, &context).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn what_could_make_a_text_grow_is_refused_and_so_is_bad_syntax() {
    for (source, expected) in [
        ("{% set a = 'x' %}", "`{% set %}` is not supported (line 1)"),
        ("a\n{% with a = b %}{% endwith %}", "`{% with %}` is not supported (line 2)"),
        ("{% include 'x' %}", "`{% include %}` is not supported (line 1)"),
        ("{% macro a() %}{% endmacro %}", "`{% macro %}` is not supported (line 1)"),
        ("{% for a in b recursive %}{% endfor %}", "`recursive` is not supported (line 1)"),
        ("{{ a ~ a }}", "`~` is not supported (line 1)"),
        ("{{ 'a' * 9999 }}", "`*` is not supported (line 1)"),
        ("{{ a + a }}", "`+` is not supported (line 1)"),
        ("{{ a | join(b) }}", "`| join` is not supported (line 1)"),
        ("{% if a is defined %}{% endif %}", "`is` is not supported (line 1)"),
        ("{{ form.title", "unexpected end of input, expected end of variable block (line 1)"),
        ("{% if a %}", "unexpected end of input, expected end of block (line 1)"),
    ] {
        let found = check(source).unwrap_err();
        assert!(found.starts_with(expected), "{source}: {found}");
    }
}

#[test]
fn what_is_too_deep_for_the_stack_is_refused() {
    let many = |text: &str, count: usize| text.repeat(count);
    for source in [
        format!("{{{{ {}1 }}}}", many("-", 8_000)),
        format!("{{{{ 1{} }}}}", many("-1", 8_000)),
        format!("{{{{ {}1 }}}}", many("not ", 4_900)),
        format!("{{{{ a{} }}}}", many(".a", 9_000)),
        format!("{{% if a %}}{}{{% endif %}}", many("{% elif a %}", 1_600)),
        format!("{}{}", many("{% if a %}", 1_000), many("{% endif %}", 1_000)),
    ] {
        let problem = check(&source).unwrap_err();
        assert!(problem.contains(" parts (line 1)") || problem.contains("more than 40 blocks"), "{problem}");
    }
    let deep = format!("{}{}", many("{% if a %}", 40), many("{% endif %}", 40));
    let wide = format!("{{{{ {}1 }}}}", many("-", 98));
    let long = format!("{{% if a %}}{}{{% endif %}}", many("{% elif a %}", 39));
    for source in [deep, wide, long] {
        let checked = std::thread::Builder::new()
            .stack_size(1 << 20)
            .spawn(move || check(&source).map(|()| render(&source, &context! {})));
        assert!(checked.unwrap().join().is_ok());
    }
}

#[test]
fn the_names_in_a_template_are_found() {
    let source = "{{ form.title }}{% for f in fields %}{{ f.text }}{{ loop.index }}{% endfor %}{{ answers.q1 | upper }}";
    assert_eq!(names(source).into_iter().collect::<Vec<_>>(), ["answers.q1", "fields", "form.title"]);
}

#[test]
fn rendering_takes_limited_steps_and_space() {
    let many = vec!["x".repeat(60_000); 10];
    let context = context! { many };
    let nested = "{% for a in many %}".repeat(8) + "." + &"{% endfor %}".repeat(8);
    assert!(render(&nested, &context).is_err());
    assert!(render("{% for a in many %}{{ a }}{% endfor %}", &context).is_err());
    assert!(render("{{ [many, many] | lower }}", &context).is_err());
}
