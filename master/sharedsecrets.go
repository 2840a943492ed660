package master

import (
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// UseKey implements cluster.KeyHolder.
func (s *shared) UseKey(key *crypt.Key) {
	s.m.secrets.mu.Lock()
	s.m.secrets.aes = key
	s.m.secrets.mu.Unlock()
}

// sessionKeys returns the keys that a minion's requests may be sealed with, the newest first, and their generation.
func (s *shared) sessionKeys(id string, pub *crypt.PublicKey) ([]*crypt.Key, int64, error) {
	generation, err := s.m.keys.Generation(id)
	if err != nil {
		return nil, 0, err
	}
	all, err := s.vault.SessionKeys(id, pub, generation)
	return all, generation, err
}

// openRequest opens a minion's request. Where masters share their secrets, the session may have begun at another one.
func (m *Master) openRequest(e protocol.Envelope, s *sessions.Session, pub *crypt.PublicKey) (protocol.Verified, error) {
	if m.shared == nil {
		return protocol.OpenRequest(e, s.Current(m.opts.PublishSession, pub), pub)
	}
	all, generation, err := m.shared.sessionKeys(e.ID, pub)
	if err != nil {
		return protocol.Verified{}, err
	}
	s.Enter(generation)
	var v protocol.Verified
	for _, key := range all {
		if v, err = protocol.OpenRequest(e, key, pub); err == nil {
			break
		}
	}
	return v, err
}

// issueSession gives a minion that signed in its session key.
func (m *Master) issueSession(id string, pub *crypt.PublicKey) (*crypt.Key, error) {
	if m.shared == nil {
		return m.sessions.Issue(id, pub)
	}
	all, _, err := m.shared.sessionKeys(id, pub)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// session returns what is known of a minion's session, nil if there is none.
func (m *Master) session(id string) *sessions.Session {
	if m.shared == nil {
		return m.sessions.Get(id)
	}
	return m.sessions.Join(id)
}

// outdated follows a request of a time that cannot be judged: the minion gets another session key, under which recordings are worthless.
func (m *Master) outdated(id string, s *sessions.Session) {
	if m.shared == nil {
		return // the next sign-in makes one
	}
	if err := m.keys.Renew(id, s.Generation()); err != nil {
		m.log.Warn("cannot renew session of minion", "minion", id, "err", err)
	}
}
