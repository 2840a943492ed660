package tools

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/audit"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/targets"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

func clearError(name string) map[string]any {
	message := map[string]string{"AuthenticationError": "Authentication error occurred.",
		"AuthorizationError": "Authorization error occurred."}[name]
	return map[string]any{"error": map[string]any{"name": name, "message": message}}
}

// publish answers the publish request of a command line tool (salt/master.py, ClearFuncs.publish).
func (s *Server) publish(ctx context.Context, peer string, load map[string]any,
	ordered func() map[string]any) any {
	kwargs, _ := payload.Map(load["kwargs"])
	args, _ := payload.List(load["arg"])
	who, err := s.ask(ctx, peer, load, kwargs)
	name := who.name
	entry := audit.Entry{Via: "local", From: peer, User: name, EAuth: fields.Text(kwargs, "eauth"),
		Kind: "local", Fun: fields.Functions(load["fun"]), TgtType: fields.Text(load, "tgt_type"),
		Tgt: load["tgt"], Outcome: audit.Denied}
	defer func() { s.Account.Record(entry) }()
	if err != nil {
		s.warnRefused(peer, "publish refused", "user", fields.Brief(name), "peer", peer, "err", err)
		return clearError("AuthenticationError")
	}
	tgtType, tgt, may := s.mayPublish(who, load, args)
	if !may || s.denied(who, load) {
		s.warnRefused(peer, "publish refused: not allowed", "user", fields.Brief(name), "fun",
			load["fun"], "peer", peer)
		return clearError("AuthorizationError")
	}
	saved := maps.Clone(load)
	delete(saved, "key")
	if list, ok := payload.List(ordered()["arg"]); ok {
		args, saved["arg"] = list, list
	}
	if who.external {
		saved["kwargs"] = withoutSecrets(kwargs)
	}
	j := Job{Fun: load["fun"], Arg: args, Tgt: tgt, TgtType: tgtType,
		Delimiter: fields.Text(kwargs, "delimiter"),
		Ret:       fields.Text(load, "ret"), User: name, JID: fields.Text(load, "jid"), Load: saved,
		Extra: make(map[string]any), NoCache: pytext.Truth(kwargs["nocache"])}
	protocol.PublishedKwargs(j.Extra, kwargs)
	if to, ok := load["to"]; ok {
		j.Extra["to"] = to
	}
	s.admit()
	jid, minions, missing, err := s.Publisher.PublishFor(ctx, j)
	entry.Outcome, entry.JID = audit.Allowed, jid
	switch {
	case targets.IsNoMinions(err), target.Unusable(err):
		// As in stock, a target that cannot be parsed matches no minion.
		s.Log.Info("No minion matches", "user", name, "err", err)
		return map[string]any{"enc": "clear",
			"load": map[string]any{"jid": nil, "minions": []any{},
				"error": (&targets.NoMinionsError{Tgt: tgt}).Error()}}
	// guard: disk-full-in-words master:TestPublishWithoutRoom
	case err != nil:
		entry.Outcome = audit.Failed
		s.Log.Error("Cannot publish", "user", name, "err", err)
		// Not a load without minions, which clients report as a target without a match.
		return map[string]any{"error": map[string]any{"name": "SaltMasterError",
			"message": err.Error()}}
	}
	// guard: CVE-2015-6918,CVE-2015-6941,CVE-2021-25284 master:TestT7NoSecretsInLogs instead: s.Log.Info("user published job", "load", load)
	s.Log.Info("User published job", "user", name, "fun", load["fun"], "jid", jid)
	return map[string]any{"enc": "clear",
		"load": map[string]any{"jid": jid, "minions": nested.Anys(minions),
			"missing": nested.Anys(missing)}}
}
