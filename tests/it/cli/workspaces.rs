//! `forms workspaces`.

use super::Home;
use super::terminal::Session;

/// Creates a workspace and returns its id and its first key.
#[track_caller]
fn create(home: &Home, name: &str) -> (String, String) {
    let created = home.run(&["-o", "json", "workspaces", "create", name]).expect(0).json();
    let text = |member: &str| created[member].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

#[test]
fn a_workspace_is_created_with_an_admin_key() {
    let home = Home::new();
    let _server = home.serve();
    let run = home.run(&["workspaces", "create", "Customer service"]).expect(0);
    let key = run.stdout.trim_end();
    assert!(key.starts_with("fk_") && run.stdout.lines().count() == 1, "{run:?}");
    let listed = home.run(&["workspaces", "list", "-o", "json"]).expect(0).json();
    let id = listed["workspaces"][0]["id"].as_str().unwrap();
    let lines = format!("created {id} \"Customer service\"\nshown only this once: store it now\n");
    assert_eq!(run.stderr, lines);
    let found = home.run_with(&[("FORMS_API_KEY", key)], &["whoami", "-o", "json"]).expect(0).json();
    assert_eq!(
        (&found["workspace"]["id"], &found["key"]["scopes"]),
        (&id.into(), &serde_json::json!(["admin"]))
    );
    let rows = home.ok(&["workspaces", "list"]);
    let names: Vec<_> = rows.lines().map(|row| row.split('\t').nth(1).unwrap()).collect();
    assert_eq!(names, ["Customer service", "default"]);
    // Forms of one workspace do not exist in the other.
    let form = home.published_form(&[]);
    home.run_with(&[("FORMS_API_KEY", key)], &["show", &form]).expect(3);
    home.run_with(&[("FORMS_API_KEY", key)], &["workspaces", "list"]).expect(4);
    // An operator makes keys of each.
    let key = home.ok(&["keys", "create", "--name", "b", "--scope", "read", "--workspace", id]);
    let found = home.run_with(&[("FORMS_API_KEY", key.trim())], &["whoami", "-o", "json"]).expect(0).json();
    assert_eq!(found["workspace"]["id"], id);
}

#[test]
fn a_workspace_is_deleted_after_its_name_is_typed() {
    let home = Home::new();
    let server = home.serve();
    let (id, key) = create(&home, "Customer service");
    let refused = home.run(&["workspaces", "delete", &id]).expect(2);
    let message = "error: cannot erase the workspace \"Customer service\" with its keys, forms and answers without a confirmation, ";
    assert!(refused.stderr.starts_with(message), "{refused:?}");
    for (typed, code) in [("y\r", 1), ("\u{3}", 130), ("Customer service\r", 0)] {
        let mut session = Session::start_at_width(160, &home, &[], &["workspaces", "delete", &id]);
        let what = "Erase the workspace \"Customer service\" with its keys, forms and answers";
        session.wait_for(&format!("{what} on {}?", server.url));
        session.wait_for("Type Customer service to confirm");
        session.type_keys(typed);
        let (ended, screen) = session.finish();
        assert_eq!(ended, Some(code), "{screen}");
    }
    home.run_with(&[("FORMS_API_KEY", &key)], &["list"]).expect(4);
    for arguments in [&["workspaces", "delete", &id][..], &["workspaces", "delete", "--yes", &id]] {
        let gone = home.run(arguments).expect(3);
        assert!(gone.stderr.contains("= help: forms workspaces list\n"), "{gone:?}");
    }
    let (id, _) = create(&home, "b");
    assert_eq!(home.ok(&["workspaces", "delete", "--yes", &id]), format!("{id}\n"));
}
