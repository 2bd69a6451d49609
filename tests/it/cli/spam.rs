//! `forms spam`.

use super::Home;

#[test]
fn spam_is_listed_released_and_purged() {
    let home = Home::new();
    let form = home.published_form(&["--data", "store"]);
    let counted = home.ok(&["--data", "store", "submit", &form, "q1=soup"]).trim().to_owned();
    let spam = home.quarantine(&form, 4);
    let run = |arguments: &[&str]| home.run(&[&["--data", "store"], arguments].concat());
    let listed = run(&["spam", "list"]).expect(0);
    let ids: Vec<_> = listed.stdout.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(ids, [&*spam[3], &*spam[2], &*spam[1], &*spam[0]]);
    let shown = run(&["responses", "show", &form, &spam[0]]).expect(0);
    assert!(shown.stdout.contains("quarantined") && shown.stdout.contains("cheap pills"), "{}", shown.stdout);
    let edit = run(&["responses", "edit", &form, &spam[0], "q1=x"]).expect(3);
    assert!(edit.stderr.contains(&format!("spam release {form} {}", spam[0])), "{}", edit.stderr);
    let released = run(&["spam", "release", &form, &spam[0]]).expect(0);
    assert_eq!(released.stdout, format!("{}\n", spam[0]));
    let again = run(&["spam", "release", &form, &spam[0]]).expect(5);
    assert!(again.stderr.starts_with("error[not_quarantined]: "), "{}", again.stderr);
    // What is not quarantined is never purged.
    run(&["spam", "purge", &form, &counted, "--yes"]).expect(5);
    assert!(run(&["spam", "purge", &form]).expect(2).stderr.contains("erase 3 quarantined responses to"));
    let one = run(&["spam", "purge", &form, &spam[2], "--yes"]).expect(0);
    assert_eq!(one.stdout, format!("{}\n", spam[2]));
    let purged = run(&["spam", "purge", &form, "--yes"]).expect(0);
    assert_eq!(purged.stdout, format!("{}\n{}\n", spam[3], spam[1]));
    assert_eq!(run(&["spam", "purge", &form, "--yes"]).expect(0).stderr, "no quarantined responses\n");
    assert_eq!(run(&["spam", "list", &form]).expect(0).stdout, "");
    let left = run(&["responses", &form, "--columns", "id"]).expect(0);
    assert_eq!(left.stdout.lines().collect::<Vec<_>>(), [&*spam[0], &*counted]);
}
