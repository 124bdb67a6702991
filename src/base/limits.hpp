// Names every limit of Muniment, with its unit before `max`. Limits of stored values have a matching CHECK in
// migrations/, and every limit has a test at its edge.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muniment::limits {

// Requests (docs/protocol.md).
inline constexpr std::size_t request_line_bytes_max = 1 << 20;
inline constexpr std::size_t json_depth_max = 64;
inline constexpr std::size_t reply_depth_max = 2 * json_depth_max;  // nesting of the client plus that of the reply
inline constexpr std::size_t number_digits_max = 40;
inline constexpr int number_exponent_max = 308;
inline constexpr std::size_t requests_in_flight_per_connection_max = 256;
inline constexpr std::size_t request_bytes_in_flight_per_connection_max =
    8 << 20;  // size of the lines; more is read after some requests are answered
inline constexpr std::size_t request_bytes_in_flight_max =
    std::size_t{512} << 20;  // size of all lines, and of up to 4 MiB of raw bytes after each
inline constexpr std::int64_t status_database_ms_max = 1'000;  // a later reply has no data from Postgres
inline constexpr std::size_t unread_bytes_per_connection_max =
    8 << 20;  // size of the replies; beyond it the connection's requests wait
inline constexpr std::size_t unread_bytes_max = std::size_t{512}
                                                << 20;  // sum for all connections; beyond it the largest are closed
// A client that reads none of these bytes for this time is disconnected.
inline constexpr std::int64_t unread_ms_max = 30'000;
inline constexpr std::size_t connections_max = 10'000;        // fewer if the limit of open files is low
inline constexpr std::size_t descriptors_per_connection = 2;  // its socket, and a file to send or receive
inline constexpr std::size_t descriptors_per_thread = 2;      // a thread is one of `workers` and `search_threads`
inline constexpr std::size_t descriptors_of_daemon = 96;      // all others
inline constexpr std::size_t subscriptions_per_connection_max = 64;
inline constexpr std::size_t subscriptions_max = 4'096;  // each is checked after every commit
inline constexpr std::int64_t deadline_ms_default = 30'000;
inline constexpr std::int64_t deadline_ms_max = 600'000;
inline constexpr std::size_t refusals_told_apart_max = 1'024;  // refusals counted by run, in two minutes
inline constexpr std::size_t refused_body_drained_bytes_max = 64 << 20;

// Evidence (docs/evidence.md).
inline constexpr std::int64_t evidence_expires_seconds_max = 366 * 86'400;
inline constexpr std::size_t evidence_depends_on_max = 16;    // direct dependencies
inline constexpr std::size_t evidence_dependencies_max = 64;  // all dependencies that a check of one piece reads
inline constexpr std::size_t evidence_dependencies_request_max = 256;  // distinct dependencies that a request reads
inline constexpr std::size_t evidence_dependency_depth_max = 16;       // longest chain that a check follows
inline constexpr std::size_t reports_max = 200;                        // report files of a command
inline constexpr std::size_t reports_bytes_max = 64 << 20;             // their bytes together
inline constexpr std::int64_t file_time_tick_micros = 10'000;  // by which the time of a file's change may be too early

// Blind workflows (docs/evidence.md).
inline constexpr std::size_t workflow_files_max = 64;   // files of the specification, and golden files
inline constexpr std::int64_t bd_seconds_default = 60;  // time of one call of bd (docs/evidence.md, Beads)
inline constexpr std::int64_t bd_seconds_max = 3'600;
inline constexpr std::size_t bd_output_bytes_max = 32 * 1024 * 1024;
inline constexpr std::size_t bd_message_bytes_max = 2 * 1024;  // quoted of an error message of bd
inline constexpr std::size_t bead_evidence_max = 100;          // attached to an issue; also that of task.complete
inline constexpr std::size_t bead_runs_max = 1'000;            // runs searched for the tasks of issues
inline constexpr std::size_t workflow_refusals_max = 100;  // different refused accesses of a command that are recorded
inline constexpr std::int64_t workflow_open_files_max = 1'024;
inline constexpr std::int64_t workflow_processes_max = 512;
inline constexpr std::size_t workflow_implementation_files_max = 100'000;  // files and links

// MCP (docs/mcp.md).
inline constexpr std::size_t mcp_calls_per_session_max = 128;  // requests in progress
inline constexpr std::size_t mcp_handles_max = 1'024;          // long calls in all sessions
inline constexpr std::size_t mcp_handles_bytes_max = 64
                                                     << 20;  // size of their results; beyond it the oldest are dropped
inline constexpr std::size_t mcp_sessions_max = 1'000;       // sessions over HTTP
inline constexpr std::size_t mcp_folders_max = 16;           // folders whose files a session may have read
inline constexpr std::size_t mcp_batch_messages_max = 100;   // messages of a JSON-RPC batch (2025-03-26)
inline constexpr std::size_t http_token_bytes_min = 16;
inline constexpr std::size_t http_token_bytes_max = 1'024;
inline constexpr std::size_t mcp_listeners_per_session_max = 16;  // streams of GET

// The executor (src/cli/executor/).
inline constexpr std::size_t observed_commands_max = 256;  // at the same time
inline constexpr std::int64_t observed_commands_of_user_max = 128;
inline constexpr std::size_t executor_request_bytes_max = 8U << 20;  // words and environment; the kernel permits 6 MiB
inline constexpr std::size_t executor_request_words_max = 1U << 19;  // and variables
inline constexpr unsigned executor_request_seconds = 60;             // from the connection to the start or the refusal

// HTTP (src/http/server.hpp).
inline constexpr std::size_t http_connections_max = 1'024;
inline constexpr std::size_t http_strangers_max = 256;         // connections without an accepted request
inline constexpr std::int64_t http_stranger_seconds = 10;      // time for the head of their first request
inline constexpr std::size_t http_head_bytes_max = 16 * 1024;  // the request line and the headers
inline constexpr std::size_t http_parsing_bytes_per_connection =
    12 * 1024;  // in addition to the head: its parsed headers, and the head of the answer
inline constexpr std::size_t http_body_bytes_max = 4 << 20;
inline constexpr std::size_t http_bodies_bytes_max = 128 << 20;           // sum for all requests in progress
inline constexpr std::size_t http_unread_bytes_per_stream_max = 1 << 20;  // beyond it, the next event closes the stream
inline constexpr std::size_t http_answers_bytes_max = 128
                                                      << 20;  // sum for all clients; beyond it the largest are closed
inline constexpr std::int64_t http_idle_seconds = 60;
inline constexpr std::size_t http_bytes_per_second_min = 1'024;  // average speed of a body or a reply

// Configuration, logs and metrics of the daemon (docs/operations.md).
inline constexpr std::size_t config_file_bytes_max = 1 << 20;
inline constexpr std::int64_t daemon_log_bytes_max = 64 << 20;  // munimentd.log; munimentd.log.1 has at most half of it
inline constexpr std::int64_t postgres_shutdown_ms_max = 20'000;  // then Postgres is stopped immediately
inline constexpr std::int64_t postgres_log_bytes_max = 8 << 20;   // postgres/server.log, with the same rule
// Names of statements and followers; further names count as "other".
inline constexpr std::size_t metric_names_max = 512;
inline constexpr std::size_t files_examined_max = 200'000;  // number of artifact files that doctor examines

// Webhooks (docs/operations.md).
inline constexpr std::size_t webhooks_max = 8;  // each has a thread and a connection to Postgres
inline constexpr std::size_t webhook_name_bytes_max = 32;
inline constexpr std::size_t webhook_url_bytes_max = 2'000;
inline constexpr std::size_t webhook_types_max = 64;
inline constexpr std::size_t webhook_secret_bytes_min = 24;  // bounds of Standard Webhooks
inline constexpr std::size_t webhook_secret_bytes_max = 64;
inline constexpr std::int64_t webhook_timeout_ms = 10'000;          // time of one delivery
inline constexpr std::size_t webhook_answer_bytes_max = 64 * 1024;  // a longer answer is a failure
inline constexpr std::int64_t webhook_retry_ms_min = 1'000;
inline constexpr std::int64_t webhook_retry_ms_max = 300'000;
inline constexpr std::int64_t webhook_retry_hours_max = 72;  // a failing receiver misses older events

// Ids (docs/glossary.md).
inline constexpr std::size_t run_id_bytes_max = 128;
inline constexpr std::size_t step_id_encoded_bytes_max = 200;
inline constexpr std::size_t event_type_bytes_max = 100;
inline constexpr std::size_t actor_bytes_max = 128;

// Events.
inline constexpr std::size_t event_body_bytes_max = 60 * 1024;
inline constexpr std::size_t events_per_request_max = 1'024;
inline constexpr std::int64_t run_ids_loaded_max = 65'536;  // beyond it, Postgres is queried for each id
inline constexpr std::size_t events_per_commit_max = 1'024;
inline constexpr std::size_t bytes_per_commit_max = 1 << 20;
inline constexpr std::size_t append_queue_events_max = 65'536;
inline constexpr std::size_t append_queue_bytes_max = 64 << 20;
inline constexpr std::size_t spill_part_bytes_max = 8 * 1024;
inline constexpr std::size_t preview_bytes_max = 500;
inline constexpr std::size_t runs_in_memory_max = 20'000;
inline constexpr std::int64_t partition_bits_max =
    24;  // a partition has at most 2^24 events, a subtree of three levels of tiles
inline constexpr std::int64_t partition_bits_min = 10;

// State, snapshots, manifests.
inline constexpr std::size_t manifest_bytes_max = 60 * 1024;
inline constexpr std::size_t snapshot_inline_bytes_max = 60 * 1024;
inline constexpr std::size_t working_state_bytes_max = 4 << 20;
inline constexpr std::size_t working_state_levels_max = 60;  // within a state, below json_depth_max
inline constexpr std::size_t state_reply_bytes_max = 512 * 1024;
inline constexpr std::size_t state_list_items_max = 100;

// Artifacts.
inline constexpr std::int64_t artifact_bytes_default_max = std::int64_t{4} << 30;
inline constexpr std::size_t artifact_inline_bytes_max = 512 * 1024;
inline constexpr std::size_t artifact_raw_reply_bytes_max = 1 << 20;
inline constexpr std::size_t artifact_metadata_bytes_max = 8 * 1024;
// Size of an artifact that may use the reserve of the disk (a memory, a result, an output), down to this part of it.
inline constexpr std::int64_t artifact_in_reserve_bytes_max = 64 * 1024;
inline constexpr std::int64_t artifact_reserve_divisor = 4;
inline constexpr std::int64_t disk_reserve_bytes_default = std::int64_t{2} << 30;
inline constexpr int disk_reserve_percent_default = 5;

// Audit: notes and keys, tiles.
inline constexpr std::size_t note_bytes_max = 64 * 1024;
inline constexpr std::size_t key_file_bytes_max = 1 << 20;
inline constexpr std::size_t proof_file_bytes_max = 1 << 20;
inline constexpr std::size_t saved_state_bytes_max = std::size_t{1} << 30;
inline constexpr std::size_t bundle_index_bytes_max = 64 << 20;
inline constexpr std::int64_t bundle_text_bytes_max = std::int64_t{16} << 30;  // each text of the bundle
inline constexpr std::int64_t bundle_bytes_max = std::int64_t{1} << 40;        // the whole bundle, decompressed
inline constexpr std::size_t bundle_line_bytes_max = 1 << 20;
inline constexpr std::size_t bundle_files_max = 400'000;
inline constexpr std::size_t bundle_events_max = 16 << 20;
inline constexpr std::size_t bundle_nodes_max = 64 << 20;
inline constexpr std::size_t notes_per_witness_max = 100'000;
inline constexpr std::int64_t tile_index_max = std::int64_t{1} << 47;  // its product with 1,000 and 256 fits in 64 bits

// Embedders.
inline constexpr std::size_t lsa_terms_max = 60'000;
inline constexpr std::size_t lsa_dimension_max = 1'024;
inline constexpr std::size_t embedding_dimension_max = 4'096;  // vectors of an embedding server
inline constexpr std::size_t http_embed_batch_texts_max = 1'024;
inline constexpr std::size_t http_embed_batch_bytes_max = 256 * 1024;
inline constexpr std::size_t http_embed_answer_bytes_max = 32 << 20;
inline constexpr std::size_t model_file_bytes_max = std::size_t{512} << 20;
// Vectors of a passage, each of 254 pieces: more than the largest chunk has, at one byte a piece
inline constexpr std::size_t encoder_parts_max = 18;

// The search child and its channels (docs/retrieval.md).
inline constexpr std::size_t search_request_bytes_max = 64 << 20;  // a batch to index; the indexer stays far below
inline constexpr std::size_t search_answer_bytes_max = 16 << 20;
inline constexpr std::size_t search_channels_max = 64;
inline constexpr std::size_t searches_waiting_max = 4'096;
inline constexpr std::size_t child_task_bytes_max = std::size_t{1} << 30;  // texts to train on, a document to read
inline constexpr std::size_t child_result_bytes_max = std::size_t{256} << 20;
inline constexpr std::size_t late_queue_bytes_max = std::size_t{256} << 20;  // passages that wait for a slow embedder

// Documents and their chunks (docs/retrieval.md). A change of a chunk's sizes requires a new chunker_identity().
inline constexpr std::size_t document_text_bytes_max = 64 << 20;
inline constexpr std::size_t document_pdf_bytes_max = 256 << 20;
inline constexpr int document_pdf_pages_max = 20'000;
inline constexpr std::int64_t document_reading_ms_max = 120'000;  // time of the process that reads a document
inline constexpr std::size_t document_title_bytes_max = 200;
inline constexpr std::size_t document_levels_max = 64;       // nesting of headings and of containers
inline constexpr std::size_t chunk_bytes_target = 1'400;     // if the text permits a choice
inline constexpr std::size_t chunk_whole_bytes_max = 2'000;  // a smaller document, section or paragraph stays one chunk
// A smaller function, table or record stays one chunk.
inline constexpr std::size_t chunk_bytes_max = 4'000;
// A chunk absorbs a tiny neighbour up to this size.
inline constexpr std::size_t chunk_tolerated_bytes_max = 2'500;
inline constexpr std::size_t chunk_tiny_bytes_max = 400;  // a smaller chunk is merged with its neighbour
inline constexpr std::size_t chunk_heading_bytes_max = 300;
inline constexpr std::size_t sentence_bytes_max = 800;  // a longer sentence is cut for citations
inline constexpr std::size_t heading_bytes_max = 120;
inline constexpr std::size_t language_sample_bytes_max = 8 * 1024;
inline constexpr std::size_t encoding_sample_bytes_max = 64 * 1024;
inline constexpr std::size_t corpus_name_bytes_max = 64;
// Percent-encoded, an id may be three times as long, and must still fit into a pointer.
inline constexpr std::size_t document_id_bytes_max = 600;
inline constexpr std::size_t document_tag_bytes_max = 100;
inline constexpr std::size_t document_tags_max = 32;
inline constexpr std::size_t revision_bytes_max = 64;
inline constexpr std::size_t chunks_per_document_max = 100'000;
inline constexpr std::size_t document_sources_max = 64;
inline constexpr std::size_t documents_per_ingest_max = 256;
// Capsules (docs/format.md).
inline constexpr std::uint64_t capsule_about_bytes_max = 16 << 20;               // description of a frame
inline constexpr std::uint64_t capsule_body_bytes_max = std::uint64_t{1} << 40;  // body of a frame
inline constexpr std::uint64_t capsule_segments_max = 4'096;                     // index segments of a commit
inline constexpr std::size_t passphrase_bytes_max = 4'096;
inline constexpr std::size_t capsule_config_bytes_max = 256 << 10;
inline constexpr std::size_t capsule_expansions_default = 2;   // of each kind, by the expansion hook of a capsule
inline constexpr std::size_t capsule_log_bytes_max = 1 << 20;  // text of a turn
inline constexpr std::int64_t document_bytes_max = std::int64_t{256} << 20;  // size of an ingested file

// Answers to queries.
inline constexpr std::size_t cards_default = 10;
inline constexpr std::size_t ranked_cards_max = 100;  // cards in all pages of a query
inline constexpr std::size_t summary_bytes_max = 600;
inline constexpr std::size_t explained_hits_max = 50;  // hits in each list
inline constexpr std::size_t logged_query_bytes_max = 1'000;
inline constexpr std::size_t logged_cards_max = 100;                 // cards of all queries in a request
inline constexpr std::size_t logged_pointers_bytes_max = 32 * 1024;  // pointers of a request
inline constexpr std::size_t logged_nonsense_bytes_max = 200;        // a malformed pointer
inline constexpr std::size_t pieces_per_reading_max = 8'192;  // pieces of an artifact; further ones form a new reading

// Hooks and rerankers (docs/retrieval.md).
inline constexpr std::int64_t hook_ms_default = 2'000;
inline constexpr std::int64_t hook_ms_max = 60'000;
inline constexpr std::size_t hook_answer_bytes_max = 1 << 20;
inline constexpr std::size_t validator_reason_bytes_max = 4 * 1024;  // longer reasons of a custom validator are cut
inline constexpr std::size_t hook_arguments_max = 64;                // arguments of the command
inline constexpr std::size_t hooks_at_once_max = 4;                  // a query that finds none free runs without a hook
inline constexpr std::size_t hook_expansions_max = 8;                // expansions of each kind
inline constexpr std::size_t hook_expansion_bytes_max = 2'000;
inline constexpr std::size_t hook_warnings_max = 8;
inline constexpr std::size_t hook_warning_bytes_max = 200;
inline constexpr std::size_t rerank_candidates_default = 40;
inline constexpr std::size_t rerank_candidates_max = 100;  // ranked_cards_max: unranked cards are not shown
inline constexpr std::size_t rerank_snippet_bytes_max = 2'000;

// Texts and vectors of the embedding server, between the search child and the daemon.
inline constexpr std::size_t embed_channels = 2;  // one for documents, one for queries
inline constexpr std::size_t embed_request_bytes_max = 1 << 20;
inline constexpr std::size_t embed_answer_bytes_max = 32 << 20;

// The shared cache.
inline constexpr std::int64_t redis_ms_default = 50;  // time of a command
inline constexpr std::size_t redis_value_bytes_max = 512 * 1024;
inline constexpr int redis_failures_max = 3;           // after these failures the cache is not used …
inline constexpr std::int64_t redis_pause_ms = 5'000;  // … for this time

// Context packs. Their manifest must fit into manifest_bytes_max.
inline constexpr std::size_t pack_tokens_default = 4'000;
inline constexpr std::size_t pack_bytes_max = 128 * 1024;  // size of a pack's text, regardless of the budget
inline constexpr std::size_t pack_passages_max = 64;
inline constexpr std::size_t pack_pointer_bytes_max = 12 * 1024;  // size of all pointers of a pack
inline constexpr std::size_t pack_cards_default = 64;             // candidates for each query
inline constexpr std::size_t pack_candidates_max = 200;           // candidates for all queries together
inline constexpr std::size_t pack_logged_query_bytes_max = 300;

// Answers (docs/retrieval.md, "Answers").
inline constexpr std::size_t ask_question_bytes_max = 8 * 1024;
inline constexpr std::size_t ask_passages_default = 5;             // settings.k
inline constexpr std::size_t ask_passages_max = 64;                // pack_passages_max
inline constexpr std::size_t ask_candidates_min = 10;              // from which the confidence is computed
inline constexpr std::size_t ask_files_max = 64;                   // context.files
inline constexpr std::size_t answer_models_at_once_max = 4;        // further answers are drafted without the model
inline constexpr std::int64_t answer_reserve_ms = 500;             // of the request's deadline, for the record
inline constexpr std::int64_t answer_ms_max = 600'000;             // time of a draft
inline constexpr std::size_t answer_reply_bytes_max = 256 * 1024;  // of the model's server
inline constexpr std::size_t answer_bytes_max = 8 * 1024;          // of the model's text
inline constexpr std::size_t answer_model_tokens_max = 512;
inline constexpr std::size_t model_sentences_max = 16;
inline constexpr std::size_t answer_sentences_max = 3;  // of an extractive answer

// Calls of cloud services (docs/retrieval.md, "A cloud service").
inline constexpr std::int64_t cloud_calls_day_max = 10'000;
inline constexpr std::int64_t cloud_bytes_day_max = 1'000'000'000;
inline constexpr std::int64_t cloud_rate_max = 600;
inline constexpr std::int64_t cloud_ms_max = 600'000;                 // time of a call
inline constexpr std::size_t cloud_reply_bytes_max = 256 * 1024;      // HTTP body of a reply
inline constexpr std::size_t cloud_text_bytes_max = 16 * 1024;        // text of a reply
inline constexpr std::size_t cloud_request_bytes_max = 4 << 20;       // to the child: question, certificates, key
inline constexpr std::size_t cloud_certificates_bytes_max = 2 << 20;  // cloud_ca
inline constexpr std::size_t cloud_key_bytes_max = 1'024;
inline constexpr std::size_t cloud_env_bytes_max = 64 * 1024;  // .env in the data folder
inline constexpr std::size_t cloud_calls_at_once_max = 2;      // each occupies a worker
inline constexpr std::size_t cloud_questions_open_max = 64;    // given to callers, without a reply so far
inline constexpr std::int64_t cloud_question_seconds = 600;    // time in which a caller replies
inline constexpr int cloud_failures_max = 5;                   // in a row; after them the breaker is open …
inline constexpr std::int64_t cloud_breaker_seconds = 60;      // … for this time
inline constexpr std::int64_t cloud_record_ms = 10'000;        // wait for the commit before a call

// The vector shard (docs/retrieval.md).
inline constexpr std::size_t vector_dimensions_max = 4'096;
inline constexpr std::size_t vector_labels_per_chunk_max = 1'024;
inline constexpr std::size_t vector_space_name_bytes_max = 512;

// Analysts (docs/sql.md).
inline constexpr std::int64_t report_seconds_default = 30;  // time of a query
inline constexpr std::int64_t report_seconds_max = 24 * 3600;
inline constexpr int reporter_connections_max = 10;  // the private Postgres has 50 connections
inline constexpr std::size_t reporter_password_bytes_max = 1'024;
inline constexpr std::size_t reporter_clients_max = 32;
inline constexpr std::size_t standbys_max = 100;
inline constexpr std::size_t standby_name_bytes_max = 63;  // Postgres cuts an application_name there
inline constexpr std::size_t sql_query_bytes_max = 1 << 20;
inline constexpr std::size_t sql_rows_measured =
    1'000;  // rows that determine the widths of a table; later rows are printed as they arrive
inline constexpr std::size_t sql_cell_columns_max = 80;  // width of a table's cell

// Pages of a reply.
inline constexpr std::size_t page_items_default = 100;
inline constexpr std::size_t page_items_max = 1'000;
inline constexpr std::size_t page_bytes_max = 512 * 1024;
inline constexpr std::size_t pointers_per_request_max = 1'000;

// Traces of other systems (docs/opentelemetry.md, docs/events.md).
inline constexpr std::size_t otlp_body_bytes_max = 20 << 20;     // request, as sent
inline constexpr std::size_t otlp_request_bytes_max = 32 << 20;  // request, decompressed and as JSON
// Nesting of messages in a request; a value inside a value adds two levels. A deeper message becomes its bytes.
inline constexpr int otlp_protobuf_levels_max = 20;
inline constexpr std::size_t otlp_open_traces_max = 1'000;      // traces that wait for their end
inline constexpr std::size_t otlp_trace_spans_max = 100'000;    // trace, including its log records
inline constexpr std::size_t otlp_trace_bytes_max = 1U << 30;   // file of a trace
inline constexpr std::size_t otlp_known_spans_max = 1'000'000;  // whose repetition is recognized, in all traces
inline constexpr std::int64_t otlp_known_seconds = 3'600;       // for which a recorded trace's spans are known
inline constexpr std::int64_t otlp_quiet_seconds = 5;           // after the end of a trace's root
inline constexpr std::int64_t otlp_unended_seconds = 600;  // without spans, for a trace without the end of its root
inline constexpr std::size_t otlp_items_max = 4'000'000;   // spans and log records of a file
inline constexpr std::size_t otlp_scopes_max = 100'000;    // different resources and scopes of a file
// Bytes that are searched for texts that are a part of an event's text; a text that was not searched for counts as
// lost.
inline constexpr std::size_t coverage_searched_bytes_max = 1 << 30;

// The lexical index (docs/retrieval.md).
inline constexpr std::size_t word_bytes_max = 128;              // longer words are neither indexed nor searched for
inline constexpr std::size_t compound_parts_max = 32;           // a longer path is truncated
inline constexpr std::size_t words_per_chunk_max = 100'000;     // later words are not indexed
inline constexpr std::size_t label_bytes_max = 200;             // a longer label is indexed by its hash
inline constexpr std::size_t query_text_bytes_max = 64 * 1024;  // only the beginning of a longer query is used
inline constexpr std::size_t query_words_max = 4'096;           // these words are looked up in the index …
inline constexpr std::size_t query_terms_max = 64;              // … and the rarest of them are searched for
inline constexpr std::size_t query_phrases_max = 16;
inline constexpr std::size_t phrase_other_words_max = 24;  // in a longer query a phrase in quotes is not required
inline constexpr std::size_t query_filters_max = 64;       // filters in the markup
inline constexpr std::size_t lexical_hits_max = 10'000;
inline constexpr std::size_t index_languages_max = 16;      // whose stems are used for a query
inline constexpr std::size_t corrected_word_bytes_min = 4;  // a shorter word is not corrected
inline constexpr std::size_t corrected_word_bytes_max = 24;
inline constexpr std::size_t corrected_words_max = 4;  // in a query
inline constexpr std::size_t corrections_max = 3;      // words that a misspelt word may stand for

// The sanitiser (docs/recording.md).
inline constexpr std::size_t rule_file_bytes_max = 1 << 20;  // a file of rules in the format of gitleaks
inline constexpr std::size_t sanitised_piece_bytes_max = 16
                                                         << 20;  // a longer text is searched in pieces of whole lines
inline constexpr std::size_t known_secret_bytes_min = 8;         // a shorter value occurs by chance
inline constexpr std::size_t known_secret_bytes_max = 4'096;
inline constexpr std::size_t known_secrets_max = 10'000;  // in the file of the secrets
inline constexpr std::size_t secrets_file_bytes_max = 1 << 20;

// Questions that may leave the machine (docs/retrieval.md).
inline constexpr std::size_t question_bytes_max = 400;
inline constexpr std::size_t question_words_max = 40;
inline constexpr std::size_t question_slot_words_max = 12;
inline constexpr std::size_t question_slot_terms_max = 7;    // without words such as "of" and "the"
inline constexpr std::size_t question_replacements_max = 2;  // words that neutral nouns replace

}  // namespace muniment::limits
