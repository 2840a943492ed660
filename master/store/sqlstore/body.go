package sqlstore

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

// limits of stored values: a return may be as large as a transport allows.
var limits = payload.Limits{Bytes: 256 << 20}

func packJob(j store.Job) ([]byte, error) {
	m := map[string]any{
		"fun": j.Fun, "arg": j.Arg, "tgt": j.Tgt, "tgt_type": j.TgtType, "user": j.User,
		"minions": j.Minions, "missing": j.Missing,
	}
	if j.Load != nil {
		m["load"] = j.Load
	}
	return payload.MarshalBin(m)
}

func unpackJob(jid string, created int64, body []byte) (store.Job, error) {
	v, err := payload.UnmarshalDisk(body, limits, "arg")
	m, ok := payload.Map(v)
	if err != nil || !ok {
		return store.Job{}, fmt.Errorf("cannot read job %s: %w", jid, malformed(err))
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

// packReturn packs a return. Call done when the body is not needed any more.
func packReturn(r store.Return) (body []byte, done func(), err error) {
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

func unpackReturn(jid, id string, received int64, body []byte) (store.Return, error) {
	v, err := payload.UnmarshalDisk(body, limits, store.InOrder...)
	m, ok := payload.Map(v)
	if err != nil || !ok {
		return store.Return{}, fmt.Errorf("cannot read return of %q for job %s: %w", id, jid,
			malformed(err))
	}
	return store.Return{JID: jid, ID: id, Received: time.UnixMicro(received).UTC(), Load: m}, nil
}

func malformed(err error) error {
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

func contains(ids []string, id string) bool { return slices.Contains(ids, id) }
