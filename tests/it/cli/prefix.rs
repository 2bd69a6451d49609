//! Commands on a server behind a proxy, under a path.

use forms::config::HttpSettings;

use super::Home;
use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn every_command_works_with_a_path_in_the_url() {
    let trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    let server = Server::with_settings(HttpSettings { trusted_proxies, ..HttpSettings::default() }).await;
    for prefix in ["/surveys", "/api/forms"] {
        let wire = server.listen_under(prefix).await;
        let home = Home::new();
        let url = format!("http://{}{prefix}", wire.address);
        let run = |arguments: &[&str]| {
            let variables = [("FORMS_API_KEY", server.key.as_str()), ("FORMS_URL", &url)];
            let run = home.run_with(&variables, arguments);
            assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
            run.stdout.trim().to_owned()
        };
        let form = run(&["create", "-f", "survey.yaml"]);
        run(&["edit", &form, "--title", "Dinner"]);
        run(&["publish", &form]);
        let submission = run(&["submit", &form, "q1=soup"]);
        for arguments in [
            ["whoami"].as_slice(),
            &["list", "--all"],
            &["show", &form],
            &["responses", &form, "--all"],
            &["responses", "show", &form, &submission],
            &["responses", "delete", "--yes", &form, &submission],
            &["responses", "restore", &form, &submission],
            &["close", &form],
            &["unpublish", &form],
            &["delete", "--yes", &form],
            &["restore", &form],
        ] {
            run(arguments);
        }
        assert!(run(&["show", &form]).contains("Dinner"));
        let missing = home.run_with(
            &[("FORMS_API_KEY", server.key.as_str()), ("FORMS_URL", &format!("{url}/"))],
            &["show", "frm_000000000000", "-o", "json"],
        );
        assert_eq!(missing.code, Some(3), "{missing:?}");
        assert!(missing.stderr.contains(&format!("{prefix}/problems/form_not_found")), "{missing:?}");
    }
}
