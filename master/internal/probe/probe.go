// Package probe tags the jobs that a master publishes for itself: probes, which ask whether a minion listens, and
// status queries, which ask for the state of its jobs. A minion returns a job's metadata with its result, so each
// master of a cluster can tell what a return answers, which master asked, and over which connection the question
// reached the minion.
//
//	metadata: {brine: "knock" | "ask", near: true, of: <name of the asking master>, link: <mark of one subscriber>}
//
// The words on the wire must not change, because masters of several versions may share a database.
package probe

import (
	"maps"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol/payload"
)

// Kind is the subject of a question.
type Kind string

const (
	// Listening asks whether a minion listens.
	Listening Kind = "knock"
	// Status asks for the state of jobs.
	Status Kind = "ask"
)

// linkField is the metadata field that identifies the single subscriber to which a probe was sent.
const linkField = "link"

// Metadata returns the additional fields of a question's job. local marks it as sent over this master's own
// connections, so that its peers ignore the answer.
func Metadata(kind Kind, local bool) map[string]any {
	meta := map[string]any{"brine": string(kind)}
	if local {
		meta["near"] = true
	}
	return map[string]any{"metadata": meta}
}

// LinkMetadata returns the metadata of a probe to a single subscriber, which mark identifies.
func LinkMetadata(mark string) map[string]any {
	return map[string]any{"brine": string(Listening), linkField: mark}
}

// Link returns the mark of the subscriber that answered, or "" if the return does not answer a probe to a
// single subscriber.
func Link(load map[string]any) string { return fields.Text(metadata(load), linkField) }

// IsQuestion reports whether a job, or the job that a return answers, is a probe or a status query.
func IsQuestion(load map[string]any) bool {
	kind := metadata(load)["brine"]
	return kind == string(Listening) || kind == string(Status)
}

// IsProbe reports whether a job, or the job that a return answers, is a probe. It may be a peer master's, or
// that of a master that died.
func IsProbe(load map[string]any) bool { return metadata(load)["brine"] == string(Listening) }

// Sender returns the master that sent a question over its own connections, or "" if it was sent over those of
// all.
func Sender(load map[string]any) string { return fields.Text(metadata(load), "of") }

// IsOwn reports whether a return concerns only master, which asked over its own connections.
func IsOwn(load map[string]any, master string) bool {
	return metadata(load)["near"] == true && Sender(load) == master
}

// SentBy returns the job of a question as one master of a cluster sends it. The answer then shows, on any
// master, to which of them the minion listens. It does not modify job.
func SentBy(job map[string]any, master string) map[string]any {
	job = maps.Clone(job)
	meta := maps.Clone(metadata(job))
	meta["of"] = master
	job["metadata"] = meta
	return job
}

func metadata(load map[string]any) map[string]any {
	meta, _ := payload.Map(load["metadata"])
	return meta
}
