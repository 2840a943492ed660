// Package packed packs and unpacks what the tables of package sqlstore keep beside the columns that are searched.
package packed

import (
	"fmt"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

// Limits of stored values: a return may be as large as a transport allows.
var Limits = payload.Limits{Bytes: 256 << 20}

// PackJob packs a job.
func PackJob(j store.Job) ([]byte, error) {
	m := map[string]any{
		"fun": j.Fun, "arg": j.Arg, "tgt": j.Tgt, "tgt_type": j.TgtType, "user": j.User,
		"minions": j.Minions, "missing": j.Missing,
	}
	if j.Load != nil {
		m["load"] = j.Load
	}
	return payload.MarshalBin(m)
}

// Job unpacks a job.
func Job(jid string, created int64, body []byte) (store.Job, error) {
	v, err := payload.UnmarshalDisk(body, Limits, "arg")
	m, ok := payload.Map(v)
	if err != nil || !ok {
		return store.Job{}, fmt.Errorf("cannot read job %s: %w", jid, Malformed(err))
	}
	j := store.Job{JID: jid, Fun: m["fun"], Tgt: m["tgt"], Created: time.UnixMicro(created).UTC(),
		Minions: textList(m["minions"]), Missing: textList(m["missing"])}
	j.Arg, _ = payload.List(m["arg"])
	j.TgtType, _ = payload.Text(m["tgt_type"])
	j.User, _ = payload.Text(m["user"])
	if j.Load, ok = payload.Map(m["load"]); ok && j.Load["arg"] != nil && j.Arg != nil {
		j.Load["arg"] = j.Arg
	}
	return j, nil
}

// bodies are buffers for returns. Thousands arrive at the same time, and each is packed for as long as its
// transaction lasts. Buffers larger than maxBody are not kept.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

const maxBody = 64 << 10

// PackReturn packs a return. Call done when the body is not needed any more.
func PackReturn(r store.Return) (body []byte, done func(), err error) {
	buf := bodies.Get().(*[]byte)
	body, err = payload.AppendBin((*buf)[:0], r.Load)
	if err != nil {
		return nil, nil, err
	}
	return body, func() {
		if cap(body) <= maxBody {
			*buf = body
			bodies.Put(buf)
		}
	}, nil
}

// Return unpacks a return.
func Return(jid, id string, received int64, body []byte) (store.Return, error) {
	v, err := payload.UnmarshalDisk(body, Limits, store.InOrder...)
	m, ok := payload.Map(v)
	if err != nil || !ok {
		return store.Return{}, fmt.Errorf("cannot read return of %q for job %s: %w", id, jid,
			Malformed(err))
	}
	return store.Return{JID: jid, ID: id, Received: time.UnixMicro(received).UTC(), Load: m}, nil
}

// Malformed is why something cannot be unpacked: an error, or that there is no map.
func Malformed(err error) error {
	if err == nil {
		err = fmt.Errorf("it is not a map")
	}
	return err
}

func textList(v any) []string {
	list, _ := payload.List(v)
	var out []string
	for _, x := range list {
		if s, ok := payload.Text(x); ok {
			out = append(out, s)
		}
	}
	return out
}

// PackDelivery packs a delivery but its columns.
func PackDelivery(d store.Delivery) ([]byte, error) {
	return payload.MarshalBin(map[string]any{"state": string(d.State), "parallel": d.Parallel,
		"owner": d.Owner, "expires": Micros(d.Expires), "deadline": Micros(d.Deadline),
		"sent": Micros(d.Sent), "tries": d.Tries, "ended": Micros(d.Ended), "running": d.Running,
		"reason": d.Reason, "carries": d.Carries})
}

// Delivery fills in what PackDelivery packed.
func Delivery(d *store.Delivery, body []byte) error {
	v, err := payload.UnmarshalDisk(body, Limits)
	m, ok := payload.Map(v)
	if err != nil || !ok {
		return fmt.Errorf("cannot read delivery of job %s to %q: %w", d.JID, d.Minion,
			Malformed(err))
	}
	at := func(key string) time.Time {
		n, _ := payload.Int(m[key])
		return AtMicros(n)
	}
	word := func(key string) string {
		s, _ := payload.Text(m[key])
		return s
	}
	tries, _ := payload.Int(m["tries"])
	d.State, d.Owner = store.State(word("state")), word("owner")
	d.Reason, d.Tries = word("reason"), int(tries)
	d.Parallel, _ = m["parallel"].(bool)
	d.Running, _ = m["running"].(bool)
	d.Carries, _ = m["carries"].(bool)
	d.Expires, d.Deadline, d.Sent, d.Ended = at("expires"), at("deadline"), at("sent"), at("ended")
	return nil
}

// Micros returns a time as the tables store it; 0 is the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// AtMicros is the time that Micros returned.
func AtMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
