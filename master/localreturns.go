package master

import (
	"context"
	"errors"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

const (
	// maxReturnIDs is how many minions one request for returns may name.
	maxReturnIDs = 1000
	// returnBytes is about how large the answer may be. Its last return may be larger.
	returnBytes = 8 << 20
)

// returns answers a tool that may have missed events: it returns what the store has of a job from the minions that the request names, or from
// all if it names none. "left" lists the minions for which there was no room. A stock master answers such a request with an empty map.
func (l *local) returns(ctx context.Context, peer string, load map[string]any) any {
	kwargs, _ := payload.Map(load["kwargs"])
	jid := fields.Text(load, "jid")
	who, err := l.ask(ctx, peer, load, kwargs)
	if err != nil {
		l.m.warnRefused(peer, "request for returns refused", "user", fields.Brief(who.name), "peer", peer, "err", err)
		return clearError("AuthenticationError")
	}
	if !who.trusted {
		job, err := l.m.store.Job(ctx, jid)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return l.cannotRead(who, jid, err)
		}
		args, _ := payload.List(job.Load["arg"])
		if _, _, may := l.mayPublish(who, job.Load, args); err != nil || job.User != who.name || !may {
			l.m.warnRefused(peer, "request for returns refused: not allowed", "user", fields.Brief(who.name), "jid", fields.Brief(jid), "peer", peer)
			return clearError("AuthorizationError")
		}
	}
	ids := fields.Texts(load["ids"])
	if len(ids) > maxReturnIDs {
		return l.cannotRead(who, jid, errors.New("the request names too many minions"))
	}
	out, left, err := l.m.returnsOf(ctx, jid, ids, returnBytes)
	if err != nil {
		return l.cannotRead(who, jid, err)
	}
	return map[string]any{"returns": out, "left": left}
}

func (l *local) cannotRead(who asker, jid string, err error) any {
	l.m.log.Error("cannot read returns for a user", "user", fields.Brief(who.name), "jid", fields.Brief(jid), "err", err)
	return map[string]any{"error": map[string]any{"name": "SaltMasterError", "message": err.Error()}}
}
