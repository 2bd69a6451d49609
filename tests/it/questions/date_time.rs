//! The types `date`, `time` and `datetime`. Today is 2026-11-20.

use super::*;

#[test]
fn date_accepts_days_that_exist() {
    question(r#""type":"date""#).check(&[
        (r#"["2026-11-20", "2024-02-29", "0001-01-01"]"#, &[]),
        (r#"["2026-02-29", "2026-13-01", "2026-1-01", "20.11.2026"]"#, &["invalid_date"]),
        (r#"["2026-11-20T00:00:00Z", "+026-11-20", " 2026-11-20", "today"]"#, &["invalid_date"]),
        (r#"["2026-11-20\n"]"#, &["invalid_character"]),
        ("[20261120]", &["type_mismatch"]),
    ]);
    question(r#""type":"date","min":"2026-11-01","max":"2026-11-30""#).check(&[
        (r#"["2026-11-01", "2026-11-30"]"#, &[]),
        (r#"["2026-10-31", "2026-12-01"]"#, &["out_of_range"]),
    ]);
    question(r#""type":"date","min":"today","max":"today+30d""#).check(&[
        (r#"["2026-11-20", "2026-12-20"]"#, &[]),
        (r#"["2026-11-19", "2026-12-21"]"#, &["out_of_range"]),
    ]);
    question(r#""type":"date","max":"today-1d""#)
        .check(&[(r#"["2026-11-19", "1926-11-20"]"#, &[]), (r#"["2026-11-20"]"#, &["out_of_range"])]);
}

#[test]
fn time_accepts_times_of_day() {
    question(r#""type":"time""#).check(&[
        (r#"["00:00", "23:59:59"]"#, &[]),
        (r#"["24:00", "23:60", "23:59:60", "9:30", "09:30Z", "09:30:00.5"]"#, &["invalid_time"]),
        ("[930]", &["type_mismatch"]),
    ]);
    question(r#""type":"time","min":"09:30","max":"17:00:30""#)
        .check(&[(r#"["09:30", "17:00:30"]"#, &[]), (r#"["09:29:59", "17:00:31"]"#, &["out_of_range"])]);
}

#[test]
fn datetime_accepts_points_in_time_and_compares_them() {
    question(r#""type":"datetime""#).check(&[
        (r#"["2026-11-20T09:30:00Z", "2026-11-20T09:30:00.123456+01:30", "2026-11-20t09:30:00z"]"#, &[]),
        (r#"["2026-11-20T09:30:00.1234567890123456789012345678901234567890123Z"]"#, &[]),
        (r#"["2026-11-20T09:30:00", "2026-11-20 09:30:00Z"]"#, &["invalid_datetime"]),
        (r#"["2026-11-20T09:30Z", "2026-11-20"]"#, &["invalid_datetime"]),
        // 65, 63 and 64 fraction digits and offset: the limit is 64 characters.
        (
            r#"["2026-11-20T09:30:00.12345678901234567890123456789012345678901234567+00:00"]"#,
            &["invalid_datetime"],
        ),
        (r#"["2026-11-20T09:30:00.12345678901234567890123456789012345678901234Z"]"#, &["invalid_datetime"]),
        (r#"["2026-02-30T09:30:00Z"]"#, &["invalid_datetime"]),
        (r#"["2026-11-20T09:30:00Z\n"]"#, &["invalid_character"]),
        ("[5]", &["type_mismatch"]),
    ]);
    question(r#""type":"datetime","min":"2026-11-20T10:00:00+01:00","max":"2026-11-20T10:00:00Z""#).check(&[
        (r#"["2026-11-20T09:00:00Z", "2026-11-20T11:00:00+01:00"]"#, &[]),
        (r#"["2026-11-20T08:59:59.999999999Z", "2026-11-20T10:00:00.000000001Z"]"#, &["out_of_range"]),
    ]);
    question(r#""type":"datetime","min":"today","max":"today+1d""#).check(&[
        (r#"["2026-11-20T00:00:00Z", "2026-11-21T23:59:59.999999999Z"]"#, &[]),
        (r#"["2026-11-22T00:00:00+00:01"]"#, &[]),
        (r#"["2026-11-19T23:59:59.999999999Z", "2026-11-22T00:00:00Z"]"#, &["out_of_range"]),
    ]);
}

#[test]
fn the_settings_of_dates_and_times_are_checked() {
    check_canonical(r#""type":"date","min":"today-18d","max":"2030-01-01""#);
    check_canonical(r#""type":"time","min":"09:30","max":"09:30""#);
    check_canonical(r#""type":"datetime","min":"2026-11-20T10:00:00+01:00","max":"today+36525d""#);
    check_settings(&[
        (r#""type":"date","min":"2026-02-30""#, &["invalid_datetime/min"]),
        (r#""type":"date","min":20260230"#, &["type_mismatch/min"]),
        (r#""type":"date","max":"tomorrow""#, &["invalid_datetime/max"]),
        (r#""type":"date","max":"today+1""#, &["invalid_datetime/max"]),
        (r#""type":"date","max":"today1d""#, &["invalid_datetime/max"]),
        (r#""type":"date","max":"today+36526d""#, &["invalid_datetime/max"]),
        (r#""type":"date","max":"today+99999999999999999999d""#, &["invalid_datetime/max"]),
        (r#""type":"time","min":"today""#, &["invalid_datetime/min"]),
        (r#""type":"datetime","min":"2026-11-20""#, &["invalid_datetime/min"]),
        (r#""type":"date","min":"2026-11-02","max":"2026-11-01""#, &["invalid_range/min"]),
        (r#""type":"date","min":"today","max":"today-1d""#, &["invalid_range/min"]),
        (r#""type":"date","min":"today","max":"2000-01-01""#, &[]),
        (r#""type":"time","min":"10:00","max":"09:59:59""#, &["invalid_range/min"]),
    ]);
}
