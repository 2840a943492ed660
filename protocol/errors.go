package protocol

import (
	"errors"
	"fmt"

	"github.com/brine-salt/brine/protocol/crypt"
)

// Version is the dialect of the wire protocol spoken here: session keys per minion, nonces, signed replies. Peers
// with an older one are refused unless an option allows them (salt/channel/server.py:handle_message).
const Version = 3

// BadLoad is the reply, packed but not encrypted, to a message that the master refuses to read. It says no more, so
// that a sender cannot learn which check failed.
const BadLoad = "bad load"

var (
	// ErrBadLoad is matched by errors that a master answers with a plain text; see [ReplyText].
	ErrBadLoad = errors.New("protocol: bad load")
	// ErrReauth is matched by errors after which a minion should sign in again and repeat the failed request once.
	ErrReauth = errors.New("protocol: no longer authenticated")
	// ErrReplayed means that an authentic message does not answer this request, or is an old one sent again.
	ErrReplayed = errors.New("protocol: replayed message")
	// ErrUnsigned means that a published message has no signature although one is required.
	ErrUnsigned = errors.New("protocol: message is not signed")
	// ErrBadSignature means that a signature is missing, malformed or not the master's.
	ErrBadSignature = errors.New("protocol: signature of the master does not verify")
	// ErrMasterKeyChanged means that the master showed another key than the cached one.
	ErrMasterKeyChanged = errors.New("protocol: the master key has changed")
	// ErrBadReply is matched by errors about sign-in replies that fail a check. No part of such a reply may be
	// used.
	ErrBadReply = errors.New("protocol: bad sign-in reply")
	// ErrAlgorithm means that one side does not support an algorithm. Trying again does not help.
	ErrAlgorithm = crypt.ErrAlgorithm
	// ErrMalformed is matched by errors about authentic content that does not have the required form.
	ErrMalformed = errors.New("protocol: malformed")
)

// A LoadError is a message that a master refuses. It matches [ErrBadLoad]. It has two texts, because the log may
// say more than the peer may know.
type LoadError struct {
	Reply string // text for the peer
	Why   error  // reason for the log
}

func (e *LoadError) Error() string {
	if e.Why == nil {
		return "protocol: " + e.Reply
	}
	return fmt.Sprintf("protocol: %s: %v", e.Reply, e.Why)
}

// Unwrap returns [ErrBadLoad] and the reason.
func (e *LoadError) Unwrap() []error {
	if e.Why == nil {
		return []error{ErrBadLoad}
	}
	return []error{ErrBadLoad, e.Why}
}

// badLoad returns a LoadError that tells the peer nothing but [BadLoad].
func badLoad(format string, args ...any) error {
	return &LoadError{Reply: BadLoad, Why: fmt.Errorf(format, args...)}
}

// ReplyText returns the text with which a master answers a message that failed with err, in Salt's words.
func ReplyText(err error) string {
	var l *LoadError
	if errors.As(err, &l) {
		return l.Reply
	}
	return BadLoad
}

// An AlgorithmError is a sign-in request that names an unknown algorithm. Answer it with [BadAlgorithm] of Which.
// It matches [ErrAlgorithm].
type AlgorithmError struct {
	Which string // "enc" or "sig"
	Name  string
}

func (e *AlgorithmError) Error() string {
	return fmt.Sprintf("protocol: unsupported %s algorithm %.40q", e.Which, e.Name)
}

// Unwrap returns [ErrAlgorithm].
func (e *AlgorithmError) Unwrap() error { return ErrAlgorithm }

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w %s", ErrMalformed, fmt.Sprintf(format, args...))
}
