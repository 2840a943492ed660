package tools

import (
	"context"
	"errors"
	"maps"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

const (
	// maxReturnIDs limits the minions in one request for returns.
	maxReturnIDs = 1000
	// returnBytes is the approximate limit of the answer. Its last return may exceed it.
	returnBytes = 8 << 20
)

// returns answers a tool that may have missed events with the stored returns of a job, from the minions in the
// request, or from all if it names none. "left" lists the minions whose returns did not fit. A stock master
// answers such a request with an empty map.
func (s *Server) returns(ctx context.Context, peer string, load map[string]any) any {
	kwargs, _ := payload.Map(load["kwargs"])
	jid := fields.Text(load, "jid")
	who, err := s.ask(ctx, peer, load, kwargs)
	if err != nil {
		s.warnRefused(peer, "request for returns refused", "user", fields.Brief(who.name), "peer",
			peer, "err", err)
		return clearError("AuthenticationError")
	}
	if !who.trusted {
		job, err := s.store.Job(ctx, jid)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return s.cannotRead(who, jid, err)
		}
		args, _ := payload.List(job.Load["arg"])
		if _, _, may := s.mayPublish(who, job.Load, args); err != nil || job.User != who.name ||
			!may {
			s.warnRefused(peer, "request for returns refused: not allowed", "user",
				fields.Brief(who.name), "jid", fields.Brief(jid), "peer", peer)
			return clearError("AuthorizationError")
		}
	}
	ids := fields.Texts(load["ids"])
	if len(ids) > maxReturnIDs {
		return s.cannotRead(who, jid, errors.New("the request names too many minions"))
	}
	out, left, err := s.returnsOf(ctx, jid, ids, returnBytes)
	if err != nil {
		return s.cannotRead(who, jid, err)
	}
	return map[string]any{"returns": out, "left": left}
}

// returnsOf reads a job's stored returns from some minions, or from all if ids is empty, up to about limit
// bytes. left are the minions that have returned and were not read.
func (s *Server) returnsOf(ctx context.Context, jid string, ids []string,
	bytes int) (out map[string]any, left []string, err error) {
	out, left = make(map[string]any), []string{}
	set := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		set[id] = struct{}{}
	}
	wanted := func(id string) bool { return len(ids) == 0 || fields.Has(set, id) }
	err = store.EachReturn(ctx, s.store, jid, wanted, func(r store.Return) {
		if bytes <= 0 {
			left = append(left, r.ID)
			return
		}
		load := r.Load
		if load["jid"] == nil || load["id"] == nil {
			load = maps.Clone(load)
			load["jid"], load["id"] = jid, r.ID
		}
		bytes -= payload.Size(load)
		out[r.ID] = load
	})
	return out, left, err
}

func (s *Server) cannotRead(who asker, jid string, err error) any {
	s.Log.Error("Cannot read returns for a user", "user", fields.Brief(who.name), "jid",
		fields.Brief(jid), "err", err)
	return map[string]any{"error": map[string]any{"name": "SaltMasterError",
		"message": err.Error()}}
}
