package sqlrules

import (
	"slices"
	"strings"
)

// unpinned names the functions that may leave their search_path as the caller set it, with the reason. Each name,
// type and operator in them is written in full, and what they call pins its own.
var unpinned = map[string]string{
	"parley._p_any":               "a pinned search_path would keep the planner from taking it for the constant that it is",
	"parley._p_keeps_snapshot":    "a pinned search_path would keep the planner from putting it in line; each wait asks it",
	"parley._p_lane":              putInLine,
	"parley._p_as_received":       putInLine,
	"parley._p_received":          putInLine,
	"parley._p_rows_in_order":     putInLine,
	"parley._p_ready_to_send":     putInLine,
	"parley._p_free_rows":         putInLine,
	"parley._p_rows_sent_alone":   putInLine,
	"parley._p_whole_rows":        putInLine,
	"parley._p_lock_first_group":  partOfReceive,
	"parley._p_record_received":   partOfReceive,
	"parley._p_end_wait":          partOfReceive,
	"parley.end_conversation":     "a pinned search_path would keep the planner from putting it in line; its other forms pin theirs",
	"parley._p_end_usual_side":    partOfEnd,
	"parley._p_end_sides":         partOfEnd,
	"parley._p_close_usual_sides": partOfEnd,
	"parley._p_remove_sides":      partOfEnd,
	"parley._p_set_aside_lane":    putInLine,
	"parley._p_waiting_lane":      putInLine,
	"parley._p_lanes":             putInLine,
	"parley._p_end_of_first_rows": putInLine,
	"parley._p_is_system_message": putInLine,
	"parley._p_usual_type":        putInLine,
	"parley._p_owner_of_lane":     putInLine,
	"parley._p_newest_hint":       putInLine,
	"parley.current_caller":       putInLine,
	"parley._p_caller":            "a pinned search_path would keep the planner from putting it in line; each call asks it",
	"parley._p_admit":             "the hot path: setting the search_path costs a tenth of a bare insert",
	"parley.put":                  "the hot path: setting the search_path costs a tenth of a bare insert",
	"parley.send":                 "the hot path: setting the search_path costs a tenth of a bare insert",
	"parley.send_to_all":          inLineOfSend,
	"parley.send_batch":           inLineOfSend,
	"parley.put_batch":            inLineOfSend,
	"parley.wait_for_message":     waitCommits,
	"parley_store.read_content":   "with a pinned search_path the planner does not put it in line: all chunks would come before the first",

	"parley_mail._p_domain_of":        putInLine,
	"parley_mail._p_parts_of_lane":    putInLine,
	"parley_mail._p_event_of":         putInLine,
	"parley_mail._p_folded":           putInLine,
	"parley_mail._p_is_ascii":         putInLine,
	"parley_mail._p_priority_of_item": putInLine,

	"parley_flow._p_hash": putInLine,
}

// The reason of several.
const putInLine = "a pinned search_path would keep the planner from putting it in line, in statements of SEND, RECEIVE and the views"

const partOfReceive = "each RECEIVE calls it: setting the search_path would cost as much as the call"

const partOfEnd = "each END calls it: setting the search_path once more would cost a hundredth of it"

const inLineOfSend = "a pinned search_path would keep the planner from putting it in line; it calls another form of itself"

const waitCommits = "a procedure that sets anything cannot commit, which is what it is for; " +
	"what reads and asks for rights pins its own"

// compiled names the functions that go without sequential scans and leave compiling as the caller set it, with the reason.
var compiled = map[string]string{
	"parley.put":  "the hot path: its one statement reads one table, which has an index for it; what it calls sets it",
	"parley.send": "the hot path: its one statement reads one table, which has an index for it; what it calls sets it",
}

// asksNobody names the public functions that run with their owner's rights and do the same for everybody, with the reason.
var asksNobody = map[string]string{
	"parley.attach_broker": "shows the version and the state of the broker, which every client has to know",
}

// returnsTheLogin names the files that say who has logged in, with the reason. It is no ground for any right.
var returnsTheLogin = map[string]string{
	"parley/transport/leadership.sql":       "the row of the leader says as whom its daemon has logged in",
	"parley/activation/readers.sql":         "the daemon's login needs no SET ROLE to itself",
	"parley/activation/event_messages.sql":  "an event notification has an element LoginName",
	"parley/conversation/traced_events.sql": "a traced event has a column for it",
}

// A tolerance is what plpgsql_check may say about a function, with the reason.
type tolerance struct {
	function string // by its full name, each of its overloads; "" for all functions
	message  string // part of what is said
	reason   string
}

var tolerated = []tolerance{
	{
		message: `"found" should not be modified by user`,
		reason:  "what may raise is called by an assignment that leaves FOUND as PERFORM would: parley/base/errors.sql says why",
	},
	{
		function: "parley_store.read_chunks",
		message:  "is maybe unmodified",
		reason:   "RETURN QUERY EXECUTE gives its rows",
	},
	{
		function: "parley._p_broker_instance",
		message:  "control reached end of function without RETURN",
		reason:   "its handler ends in _p_raise, which never returns",
	},
	{
		function: "parley.error_broker_conversations",
		message:  "control reached end of function without RETURN",
		reason:   "its handler ends in _p_raise_in_use, which never returns",
	},
	{
		function: "parley.new_broker",
		message:  "control reached end of function without RETURN",
		reason:   "its handler ends in _p_raise_in_use, which never returns",
	},
	{
		function: "parley._p_wait_for_message",
		message:  "control reached end of function without RETURN",
		reason:   "its loop is left by return only",
	},
	{
		function: "parley._p_commit_refusal",
		message:  "invalid transaction termination",
		reason:   "it is there to be refused",
	},
	{
		function: "parley.wait_for_message",
		message:  "cannot commit while a subtransaction is active",
		reason:   "that refusal shows that it is called outside of a transaction",
	},
	{
		function: "parley.get_conversation_group",
		message:  "control reached end of function without RETURN",
		reason:   "its loop is left by return only",
	},
}

// Tolerates reports whether plpgsql_check may say this about a function.
func Tolerates(function, message string) bool {
	return slices.ContainsFunc(tolerated, func(t tolerance) bool {
		return (t.function == "" || t.function == function) && t.reason != "" && strings.Contains(message, t.message)
	})
}

// withinReach names the private functions that run with their owner's rights for everybody, and the other private objects that everybody
// may use, with the reason. None may believe its arguments: whoever calls it can make them up.
var withinReach = map[string]string{
	"parley._p_broker_state()": "parley.databases calls it for whoever reads them: every client has to know the state",
	"parley._p_current_term()": "the views of the daemon call it for whoever reads them: which term it is says nothing of anybody",

	// For parley.wait_for_message, which cannot run with its owner's rights. Its belief about the wait changes the caller's own wait.
	"parley._p_watch_queue(text,integer,parley._p_wait,parley.caller)": asksTheCaller,
	"parley._p_ids_of_queues_to_receive_from(parley.caller)":           asksTheCaller,
	"parley._p_simple_queues(parley.caller)":                           asksTheCaller,
	"parley._p_schedules(parley.caller)":                               asksTheCaller,
	"parley._p_batches(parley.caller)":                                 asksTheCaller,
	"parley._p_queue_limits(parley.caller)":                            asksTheCaller,
	"parley._p_schedule_runs(parley.caller)":                           asksTheCaller,
	"parley._p_delivery_claims(parley.caller)":                         asksTheCaller,
	"parley._p_queue_quotas(parley.caller)":                            asksTheCaller,
	"parley._p_performance_counters(parley.caller)":                    asksTheCaller,
	"parley._p_sees_definition(integer,parley.caller)":                 asksTheCaller,
	"parley._p_sees_poisoned(integer,parley.caller)":                   asksTheCaller,
	"parley._p_sees_rollbacks(integer,bigint,parley.caller)":           asksTheCaller,
	"parley._p_sees_set_aside(integer,parley.caller)":                  asksTheCaller,
	"parley._p_end_without_error(uuid,parley.caller)":                  asksTheCaller,

	"parley._p_send_later_or_once(uuid,text,bytea,text,timestamp with time zone,text,parley.caller)": asksTheCaller,

	"parley._p_clean_up(uuid,boolean,parley.caller)":                  asksTheCaller,
	"parley._p_create_contract(text,jsonb,text,parley.caller)":        asksTheCaller,
	"parley._p_create_contract_of_text(text,text,text,parley.caller)": asksTheCaller,

	"parley_mail._p_rights(parley.caller)":                                              asksTheCaller,
	"parley_mail._p_audit_records(parley.caller)":                                       asksTheCaller,
	"parley_mail._p_objects(parley.caller)":                                             asksTheCaller,
	"parley_mail._p_configuration(parley.caller)":                                       asksTheRight,
	"parley_mail._p_quotas(parley.caller)":                                              asksTheCaller,
	"parley_mail._p_stored_attachments(parley.caller)":                                  asksTheCaller,
	"parley_mail._p_submitted_messages(parley.caller)":                                  asksTheCaller,
	"parley_mail._p_claim(integer,integer,interval,text,text[],parley.caller)":          asksTheRight,
	"parley_mail._p_permit(text,bigint,bigint[],bigint[],text,text,text,parley.caller)": asksTheRight,
	"parley_mail._p_kept_policy(text,parley.caller)":                                    asksTheRight,
	"parley_mail._p_keep_policy(text,jsonb,timestamp with time zone,parley.caller)":     asksTheRight,
	"parley_mail._p_track_unstored(jsonb,parley.caller)":                                asksTheRight,
	"parley_mail._p_due_report(parley.caller)":                                          asksTheRight,
	"parley_mail._p_finish_report(bigint,parley.caller)":                                asksTheRight,
	"parley_mail._p_read_body(bigint,bigint,integer,integer,parley.caller)":             asksTheRight,
	"parley_mail._p_unneeded_bodies(bigint[],parley.caller)":                            asksTheRight,
	"parley_mail._p_record_outcomes(bigint[],bigint[],bigint[],integer[],text[],integer[],text[],text[],text[],bigint[],bigint[]," +
		"text[],integer[],integer[],text[],text[],parley.caller)": asksTheRight,
	"parley_mail._p_maintain(boolean,parley.caller)":                                     asksTheRight,
	"parley_mail._p_renew(bigint[],interval,boolean,parley.caller)":                      asksTheRight,
	"parley_mail._p_report_hops(text[],text[],timestamp with time zone[],parley.caller)": asksTheRight,

	"parley_mail._p_accept(jsonb[],bytea[],parley.caller)":           asksTheRight,
	"parley_mail._p_require_changeable(text,jsonb,parley.caller)":    asksTheRight,
	"parley_mail._p_begin_body(integer,parley.caller)":               asksTheRight,
	"parley_mail._p_put_body(bytea,parley.caller)":                   asksTheRight,
	"parley_mail._p_append_body(bigint,integer,bytea,parley.caller)": asksTheRight,
	"parley_mail._p_finish_body(bigint,bigint,bytea,parley.caller)":  asksTheRight,
	"parley_mail._p_categorize(integer,integer,parley.caller)":       asksTheRight,

	"parley_mail._p_check_recipient(text,text,boolean,bigint,parley.caller)": asksTheRight,
	"parley_mail._p_check_sender(text,parley.caller)":                        asksTheRight,
	"parley_mail._p_may_submit(text,parley.caller)":                          asksTheRight,

	"parley_mail._p_begin_categorizing(integer,integer,parley.caller)":    asksTheRight,
	"parley_mail._p_categorize_begun(bigint,parley.caller)":               asksTheRight,
	"parley_mail._p_give_back_begun(bigint,parley.caller)":                asksTheRight,
	"parley_mail._p_claim_local(integer,interval,parley.caller)":          asksTheRight,
	"parley_mail._p_local_bodies(bigint[],parley.caller)":                 asksTheRight,
	"parley_mail._p_release_local(bigint[],parley.caller)":                asksTheRight,
	"parley_mail._p_defer_local(bigint[],bigint,text,text,parley.caller)": asksTheRight,
	// The results of reading messages are believed of roles that may deliver them.
	"parley_mail._p_deliver_local(bigint[],bigint[],bytea[],parley.caller)": asksTheRight,

	"parley_mail._p_held_domains(parley.caller)":      asksTheCaller,
	"parley_mail._p_messages(parley.caller)":          asksTheCaller,
	"parley_mail._p_sees_tracking(parley.caller)":     asksTheCaller,
	"parley_mail._p_submitter_numbers(parley.caller)": asksTheCaller,

	"parley_mail._p_measure(parley.caller)": asksTheRight,
	"parley_mail._p_record_pressure(text,text,integer,text,text,double precision,text[],text,parley.caller)": asksTheRight,
	"parley_mail._p_report_daemon(text,jsonb,parley.caller)":                                                 asksTheRight,
	"parley_mail._p_thresholds(parley.caller)":                                                               asksTheCaller,
	"parley_mail._p_pressure_actions(parley.caller)":                                                         asksTheCaller,
	"parley_mail._p_pressure_changes(parley.caller)":                                                         asksTheCaller,
	"parley_mail._p_pressure_history(parley.caller)":                                                         asksTheCaller,
	"parley_mail._p_daemons(parley.caller)":                                                                  asksTheCaller,
	"parley_mail._p_queue_counters(parley.caller)":                                                           asksTheCaller,

	"parley_mail._p_queues(parley.caller)":                      asksTheCaller,
	"parley_mail._p_oldest_in(text,parley.caller)":              asksTheCaller,
	"parley_mail._p_waiting_recipients(parley.caller)":          asksTheCaller,
	"parley_mail._p_deliver_to_services(integer,parley.caller)": asksTheRight,

	"parley_flow._p_append_body(text,bigint,integer,bytea,parley.caller)":                                    asksTheRight,
	"parley_flow._p_audit_records(parley.caller)":                                                            asksTheCaller,
	"parley_flow._p_begin_body(text,parley.caller)":                                                          asksTheRight,
	"parley_flow._p_claim(text,text,integer,integer,interval,integer,text[],integer,parley.caller)":          asksTheRight,
	"parley_flow._p_measure(parley.caller)":                                                                  asksTheRight,
	"parley_flow._p_pressure_actions(parley.caller)":                                                         asksTheCaller,
	"parley_flow._p_record_pressure(text,text,integer,text,text,double precision,text[],text,parley.caller)": asksTheRight,
	"parley_flow._p_retention_rows(parley.caller)":                                                           asksTheCaller,
	"parley_flow._p_thresholds(parley.caller)":                                                               asksTheCaller,
	"parley_flow._p_complete(text,bigint[],bigint[],jsonb[],parley.caller)":                                  asksTheRight,
	"parley_flow._p_configuration(text,parley.caller)":                                                       asksTheRight,
	"parley_flow._p_configuration_version(parley.caller)":                                                    asksTheRight,
	"parley_flow._p_counter_rows(parley.caller)":                                                             asksTheCaller,
	"parley_flow._p_definition_rows(parley.caller)":                                                          asksTheCaller,
	"parley_flow._p_finish_body(text,bigint,bigint,bytea,parley.caller)":                                     asksTheRight,
	"parley_flow._p_host_rows(parley.caller)":                                                                asksTheCaller,
	"parley_flow._p_known(text,text,text[],parley.caller)":                                                   asksTheRight,
	"parley_flow._p_location_rows(parley.caller)":                                                            asksTheCaller,
	"parley_flow._p_quotas(parley.caller)":                                                                   asksTheCaller,
	"parley_flow._p_reached(text,text,parley.caller)":                                                        asksTheRight,
	"parley_flow._p_try_again(text,text,parley.caller)":                                                      asksTheRight,
	"parley_flow._p_read_body(text,bigint,bigint,integer,integer,bigint,parley.caller)":                      asksTheRight,
	"parley_flow._p_answers(text,text,bigint[],parley.caller)":                                               asksTheRight,
	"parley_flow._p_end_requests(text,text,bigint[],text[],text[],parley.caller)":                            asksTheRight,
	"parley_flow._p_channel_of_node(text,parley.caller)":                                                     asksTheRight,
	"parley_flow._p_measure_ports(parley.caller)":                                                            asksTheRight,
	"parley_flow._p_complete_answered(text,bigint[],bigint[],jsonb[],integer[],bytea[],jsonb[],text[],jsonb[],bigint[],jsonb[]," +
		"text[],text[],parley.caller)": asksTheRight,
	"parley_flow._p_receive(text,text,bytea[],jsonb[],text[],jsonb[],integer[],text[],jsonb[],bigint[],jsonb[]," +
		"text[],text[],bigint,integer[],bigint[],bigint,bigint,bigint,text,parley.caller)": asksTheRight,
	"parley_flow._p_advance(text,text,bigint[],bigint[],bigint[],integer[],jsonb[],bigint[],bytea[],text[],jsonb[],jsonb[],bigint[]," +
		"text[],integer[],bigint,integer[],bigint[],jsonb,text[],jsonb,jsonb,text[],text[],parley.caller)": asksTheRight,
	"parley_flow._p_begin_step(text,text,text[],parley.caller)":                           asksTheRight,
	"parley_flow._p_fire_timers(text,integer,parley.caller)":                              asksTheRight,
	"parley_flow._p_instance_rows(bigint[],parley.caller)":                                asksTheCaller,
	"parley_flow._p_messages_of(text,bigint[],parley.caller)":                             asksTheRight,
	"parley_flow._p_orchestration_rows(parley.caller)":                                    asksTheCaller,
	"parley_flow._p_program(text,text,integer,parley.caller)":                             asksTheRight,
	"parley_flow._p_read_held_body(text,bigint,bigint,integer,integer,parley.caller)":     asksTheRight,
	"parley_flow._p_release(text,bigint,bigint[],parley.caller)":                          asksTheRight,
	"parley_flow._p_removed(text,text,text[],parley.caller)":                              asksTheRight,
	"parley_flow._p_renew(text,bigint[],interval,parley.caller)":                          asksTheRight,
	"parley_flow._p_report(text,text,jsonb,text,boolean,parley.caller)":                   asksTheRight,
	"parley_flow._p_report_location(text,text,text,text,parley.caller)":                   asksTheRight,
	"parley_flow._p_retry(text,bigint,bigint[],text,text,interval,boolean,parley.caller)": asksTheRight,
	"parley_flow._p_rights(parley.caller)":                                                asksTheCaller,
	"parley_flow._p_routing_failure_rows(parley.caller)":                                  asksTheCaller,
	"parley_flow._p_send_port_rows(bigint,parley.caller)":                                 asksTheCaller,
	"parley_flow.port_activity(parley.caller)":                                            asksTheCaller,
	"parley_flow._p_subscription_rows(parley.caller)":                                     asksTheCaller,
	"parley_flow._p_suspend(text,bigint,bigint[],text,text,boolean,parley.caller)":        asksTheRight,
	"parley_flow._p_taken(text,text,integer,parley.caller)":                               asksTheRight,
	"parley_flow._p_track(text,text[],bigint[],jsonb[],parley.caller)":                    asksTheRight,
	"parley_flow._p_viewed(parley.caller)":                                                asksTheCaller,
}

// The reasons of several.
const (
	asksTheCaller = "a view, or a public function of several forms, calls it for whoever calls; it asks who that is"
	asksTheRight  = "a daemon calls it, whose role holds a right of its own; it asks for that"
)

// MayBeWithinReach reports whether every role may call a private function, given by its argument types, or use a private relation or
// a column of it, given with the privilege.
func MayBeWithinReach(object string) bool { return withinReach[object] != "" }

// AsksTheCaller reports whether a function that everybody may call has to ask for whom it works.
func AsksTheCaller(function string) bool {
	return withinReach[function] == asksTheCaller || withinReach[function] == asksTheRight
}
