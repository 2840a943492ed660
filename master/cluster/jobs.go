package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

// inlineReturn is the maximum size in bytes of a return that is part of its message.
const inlineReturn = 4 << 10

// Publish implements Peers.
func (s *Several) Publish(ctx context.Context, list ...Publication) error {
	var errs []error
	tell := make([]store.Message, 0, len(list))
	for _, p := range list {
		msg, err := s.publishMessage(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		tell = append(tell, msg)
	}
	if len(tell) > 0 {
		errs = append(errs, s.db.Tell(ctx, tell...))
	}
	return errors.Join(errs...)
}

// publishMessage returns the message with a job. Equal IDs and Topics are sent once.
func (s *Several) publishMessage(p Publication) (store.Message, error) {
	body := map[string]any{"job": p.Job}
	if content.IsSecret(p.Job) {
		sealed, err := content.SealJob(s.opts.Vault.seal, p.Job)
		if err != nil {
			return store.Message{}, err
		}
		body = sealed
	}
	if p.Topics != nil {
		body["topics"] = p.Topics
	}
	switch {
	case p.IDs == nil:
	case slices.Equal(p.IDs, p.Topics):
		body["ids"] = true
	default:
		body["ids"] = p.IDs
	}
	if p.NoCache {
		body["nocache"] = true
	}
	b, err := payload.MarshalBin(body)
	return store.Message{From: s.name, To: p.To, Kind: tellPublish, Body: b}, err
}

// publishHere sends a job of another master.
func (s *Several) publishHere(body map[string]any) {
	p := Publication{NoCache: body["nocache"] == true}
	var ok bool
	if p.Job, ok = payload.Map(body["job"]); !ok {
		return
	}
	if sealed, ok := payload.Bytes(body["sealed"]); ok {
		if err := content.OpenJob(s.opts.Vault.seal, p.Job, sealed); err != nil {
			s.opts.Log.Error("Job of another master cannot be sent", "jid", p.Job["jid"],
				"err", err)
			return
		}
	}
	if list, ok := payload.List(body["topics"]); ok {
		p.Topics = fields.Texts(list)
	}
	if list, ok := payload.List(body["ids"]); ok {
		p.IDs = fields.Texts(list)
	} else if body["ids"] == true {
		p.IDs = p.Topics
	}
	if err := s.opts.Host.PublishHere(p); err != nil {
		s.opts.Log.Error("Job of another master cannot be sent", "jid", p.Job["jid"], "err", err)
	}
}

// SaveOrder implements Peers.
func (s *Several) SaveOrder(ctx context.Context, o store.Order, list []store.Delivery,
	ids []string) error {
	here := slices.DeleteFunc(slices.Clone(ids),
		func(id string) bool { return !s.opts.Host.Here(id) })
	b, err := payload.MarshalBin(map[string]any{"ids": ids, "here": here})
	if err != nil {
		return err
	}
	return s.db.SaveOrderTell(ctx, o, list, store.Message{From: s.name, Kind: tellExpect, Body: b})
}

// returnMessage returns the message with a return. A large return that is stored is left out, and read from the
// store.
func (s *Several) returnMessage(jid, id string, load map[string]any,
	stored bool) (store.Message, error) {
	body := map[string]any{"jid": jid, "id": id, "load": load}
	b, err := payload.MarshalBin(body)
	if err == nil && stored && len(b) > inlineReturn {
		delete(body, "load")
		b, err = payload.MarshalBin(body)
	}
	return store.Message{From: s.name, Kind: tellReturn, Body: b}, err
}

// SaveReturn implements Peers.
func (s *Several) SaveReturn(ctx context.Context, r store.Return) (first bool, err error) {
	msg, err := s.returnMessage(r.JID, r.ID, r.Load, true)
	if err != nil {
		return false, err
	}
	return s.db.SaveReturnTell(ctx, r, msg)
}

// TellReturn implements Peers.
func (s *Several) TellReturn(ctx context.Context, jid, id string, load map[string]any) error {
	msg, err := s.returnMessage(jid, id, load, false)
	if err != nil {
		return err
	}
	return s.db.Tell(ctx, msg)
}

// returnedElsewhere handles a return that a peer received. A return in the store is read only if a caller here
// awaits it.
func (s *Several) returnedElsewhere(ctx context.Context, body map[string]any) {
	jid, id := fields.Text(body, "jid"), fields.Text(body, "id")
	tag := "salt/job/" + jid + "/ret/" + id
	load, ok := payload.Map(body["load"])
	if s.opts.Host.HeardElsewhere(id, load) {
		return
	}
	if !ok {
		if !s.opts.Host.Awaits(jid) && !s.opts.Events.Wanted(tag) {
			return
		}
		r, err := s.db.Return(ctx, jid, id)
		if err != nil {
			s.opts.Log.Warn("Return of another master's minion cannot be read", "minion", id,
				"jid", jid, "err", err)
			s.opts.Events.RelayGap(1)
			return
		}
		load = r.Load
	}
	s.opts.Events.Relay(tag, load)
	s.opts.Host.ReturnedElsewhere(jid, id, load)
}
