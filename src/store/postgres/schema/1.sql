-- Ids are the bytes of the ids of the API, in the same order; times are milliseconds since 1970-01-01T00:00:00Z.
-- What only the program reads is JSON in a column `data`; answers are the text that was sent.

CREATE TABLE marks (
    id BYTEA PRIMARY KEY,
    at BIGINT NOT NULL DEFAULT (extract(epoch FROM now()) * 1000)::BIGINT
);
CREATE INDEX marks_at ON marks (at);

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value BYTEA NOT NULL
);

-- What one server at a time may do.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    owner BIGINT NOT NULL,
    until BIGINT NOT NULL
);

CREATE TABLE workspaces (
    id BYTEA PRIMARY KEY,
    data TEXT NOT NULL,
    is_deleted BOOLEAN NOT NULL DEFAULT false
);

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    workspace BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    data TEXT NOT NULL
);
CREATE INDEX api_keys_workspace ON api_keys (workspace, created_at);

CREATE TABLE idempotency_records (
    id BYTEA PRIMARY KEY,
    form BYTEA,
    body BYTEA NOT NULL,
    result BYTEA NOT NULL,
    at BIGINT NOT NULL,
    extra BYTEA NOT NULL
);
CREATE INDEX idempotency_records_at ON idempotency_records (at);
CREATE INDEX idempotency_records_form ON idempotency_records (form) WHERE form IS NOT NULL;

CREATE TABLE forms (
    id BYTEA PRIMARY KEY,
    workspace BYTEA NOT NULL,
    slug TEXT,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT,
    revision BIGINT NOT NULL,
    data TEXT NOT NULL,
    -- Ids of the questions that were removed.
    retired TEXT
);
CREATE UNIQUE INDEX forms_slug ON forms (workspace, slug) WHERE deleted_at IS NULL;
CREATE INDEX forms_created ON forms (workspace, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX forms_deleted ON forms (workspace, deleted_at, id) WHERE deleted_at IS NOT NULL;

-- Forms that were erased, whose rows are still to be.
CREATE TABLE purges (
    form BYTEA PRIMARY KEY
);

CREATE TABLE form_versions (
    form BYTEA NOT NULL,
    number BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (form, number)
);

-- The counters of a form, in several rows, so that servers do not wait for each other. The locks of a form are these rows:
-- whoever changes the form locks all of them, whoever must see it alone but not change it the first one, and whoever adds
-- submissions any one of them.
CREATE TABLE counters (
    form BYTEA NOT NULL,
    shard SMALLINT NOT NULL,
    responses BIGINT NOT NULL DEFAULT 0,
    last_id BYTEA,
    -- Number of the last event; in the first row only.
    sequence BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (form, shard)
);

CREATE TABLE submissions (
    form BYTEA NOT NULL,
    id BYTEA NOT NULL,
    form_version BIGINT NOT NULL,
    is_quarantined BOOLEAN NOT NULL DEFAULT false,
    answers TEXT NOT NULL,
    metadata TEXT,
    edits BIGINT NOT NULL DEFAULT 0,
    edited_at BIGINT,
    -- Of a quarantined one, when it arrived.
    deleted_at BIGINT,
    PRIMARY KEY (form, id)
);
CREATE INDEX submissions_deleted ON submissions (deleted_at, form, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX submissions_trash ON submissions (form, id) WHERE deleted_at IS NOT NULL;

-- What edits of submissions have replaced.
CREATE TABLE replaced_states (
    form BYTEA NOT NULL,
    submission BYTEA NOT NULL,
    number BIGINT NOT NULL,
    form_version BIGINT NOT NULL,
    answers TEXT NOT NULL,
    metadata TEXT,
    edited_at BIGINT,
    replaced_at BIGINT NOT NULL,
    PRIMARY KEY (form, submission, number)
);

-- Deliveries of one integration are a queue. One whose integration was removed remains until its deliveries are erased.
CREATE TABLE queues (
    form BYTEA NOT NULL,
    integration BYTEA NOT NULL,
    workspace BYTEA NOT NULL,
    removed_at BIGINT,
    data TEXT NOT NULL,
    PRIMARY KEY (form, integration)
);

-- Events, but for the completion of a submission, which is made from the submission.
CREATE TABLE events (
    form BYTEA NOT NULL,
    id BYTEA NOT NULL,
    submission BYTEA,
    data TEXT NOT NULL,
    PRIMARY KEY (form, id)
);
CREATE INDEX events_submission ON events (form, submission) WHERE submission IS NOT NULL;

CREATE TABLE deliveries (
    workspace BYTEA NOT NULL,
    event BYTEA NOT NULL,
    target BYTEA NOT NULL,
    form BYTEA NOT NULL,
    integration BYTEA NOT NULL,
    submission BYTEA,
    -- 0: waits for an attempt, a deletion; 1: waits for an attempt; 2: paused; 3: dead; 4: canceled or skipped; 5: delivered
    class SMALLINT NOT NULL,
    -- The time by which those of a class are ordered.
    at BIGINT NOT NULL,
    -- Of one that waits for an attempt, when that is due, and how long it waits.
    due BIGINT,
    wait_ms BIGINT NOT NULL,
    data TEXT NOT NULL,
    -- What was rendered at the first attempt.
    body BYTEA,
    -- Who has claimed it, and until when, by the clock of the database. Once that time has passed anybody may claim it.
    owner BIGINT,
    leased_until BIGINT,
    PRIMARY KEY (workspace, event, target)
);
CREATE INDEX deliveries_queue ON deliveries (form, integration, class, at, event, target);
CREATE INDEX deliveries_submission ON deliveries (form, submission) WHERE submission IS NOT NULL;
CREATE INDEX deliveries_owner ON deliveries (owner) WHERE owner IS NOT NULL;

CREATE TABLE attempts (
    form BYTEA NOT NULL,
    event BYTEA NOT NULL,
    target BYTEA NOT NULL,
    number BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (form, event, target, number)
);

-- When respondents were sent confirmations, and by which delivery.
CREATE TABLE confirmations (
    form BYTEA NOT NULL,
    mailbox BIGINT NOT NULL,
    at BIGINT NOT NULL,
    delivery BYTEA NOT NULL,
    PRIMARY KEY (form, mailbox)
);

-- Confirmations of a form that were permitted since the beginning of its hour.
CREATE TABLE confirmation_hours (
    form BYTEA PRIMARY KEY,
    since BIGINT NOT NULL,
    permitted BIGINT NOT NULL
);
