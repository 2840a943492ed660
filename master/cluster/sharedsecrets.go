package cluster

import (
	"context"
	"log/slog"

	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// sharedSecrets implements Secrets with a vault. Session keys are not stored: they are derived from the vault
// and the records of keys.
type sharedSecrets struct {
	vault    *Vault
	keys     *keys.Store
	sessions *sessions.Store
	log      *slog.Logger
}

var _ Secrets = (*sharedSecrets)(nil)

// Sealer implements Secrets.
func (s *sharedSecrets) Sealer() (content.Sealer, error) { return s.vault.seal, nil }

// Rotate implements Secrets.
func (s *sharedSecrets) Rotate(ctx context.Context) error { return s.vault.Rotate(ctx) }

// Session implements Secrets.
func (s *sharedSecrets) Session(id string) *sessions.Session { return s.sessions.Join(id) }

// sessionKeys returns the keys with which a minion may seal requests, newest first, and their generation.
// Deleting the minion's key, or keys.Store.Renew, changes them.
func (s *sharedSecrets) sessionKeys(id string, pub *crypt.PublicKey) ([]*crypt.Key, int64, error) {
	generation, err := s.keys.Generation(id)
	if err != nil {
		return nil, 0, err
	}
	all, err := s.vault.SessionKeys(id, pub, generation)
	return all, generation, err
}

// OpenRequest implements Secrets.
func (s *sharedSecrets) OpenRequest(e protocol.Envelope, session *sessions.Session,
	pub *crypt.PublicKey) (protocol.Verified, error) {
	all, generation, err := s.sessionKeys(e.ID, pub)
	if err != nil {
		return protocol.Verified{}, err
	}
	session.Enter(generation)
	var v protocol.Verified
	for _, key := range all {
		if v, err = protocol.OpenRequest(e, key, pub); err == nil {
			break
		}
	}
	return v, err
}

// IssueSession implements Secrets.
func (s *sharedSecrets) IssueSession(id string, pub *crypt.PublicKey) (*crypt.Key, error) {
	all, _, err := s.sessionKeys(id, pub)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// OutdateSession implements Secrets.
func (s *sharedSecrets) OutdateSession(id string, session *sessions.Session) {
	if err := s.keys.Renew(id, session.Generation()); err != nil {
		s.log.Warn("Cannot renew session of minion", "minion", id, "err", err)
	}
}
