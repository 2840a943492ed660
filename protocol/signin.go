package protocol

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// A Signin is one minion's attempt to sign in at a master (salt/crypt.py:minion_sign_in_payload and
// handle_signin_response). Call Request, send what it returns, and pass the reply to Reply. Call
// Request again for each further attempt. A Signin never writes to disk.
type Signin struct {
	ID  string            // minion id
	Key *crypt.PrivateKey // the minion's key

	EncAlgo, SigAlgo string // "" means OAEP-SHA1 and PKCS1v15-SHA1

	// MasterKey is the cached key of this master, nil at first contact. If it is set, the master must show the same
	// key, and every reply must be signed with it.
	MasterKey *crypt.PublicKey
	// AES is the shared key of an earlier sign-in, or nil. If the master proves that it still uses
	// it, the copy in the reply is not decrypted, which saves the minion half of the cost of a
	// sign-in.
	AES *crypt.Key
	// ClearToken is the secret that the owner of the cached master key must send back. If it is empty, Request
	// makes one with [NewToken].
	ClearToken []byte
	// AutosignGrains is sent if it is not nil (option autosign_grains).
	AutosignGrains map[string]any

	// JoinToken is a token from the master for the first sign-in (option join_token). Only a MAC of it is sent.
	JoinToken string
	// Proof is shown in addition to JoinToken.
	Proof JoinProof

	OpenMode              bool             // option open_mode: accept any key that the master shows
	VerifyKey             *crypt.PublicKey // master_sign.pub
	VerifyPubkeySign      bool             // option verify_master_pubkey_sign
	AlwaysVerifySignature bool             // option always_verify_signature
	// MinimumVersion is the oldest dialect to accept from a master: 0 and 3 mean [Version]; 2 also allows masters
	// before 3006.12 and 3007.4, which have no session keys (CVE-2025-62349).
	MinimumVersion int

	nonce string
	token []byte // the clear token of this request, nil if none was sent
}

// NewToken returns a new clear token of 76 base64 characters. A minion makes one per process.
func NewToken() []byte {
	var b [56]byte
	_, _ = rand.Read(b[:]) // never fails
	return []byte(base64.StdEncoding.EncodeToString(b[:]))
}

// A SigninStatus is a master's decision about a minion.
type SigninStatus int

// The decisions. The zero value means that the master has not decided yet.
const (
	Accepted SigninStatus = iota + 1
	Pending               // the key must still be accepted: ask again later
	Rejected              // the key is rejected, or another key holds this id, or the id is invalid
	Full                  // the master takes no more minions
	Denied                // another key holds this id; a stock master's reply reads as Rejected
)

func (s SigninStatus) String() string {
	switch s {
	case Accepted:
		return "accepted"
	case Pending:
		return "pending"
	case Rejected:
		return "rejected"
	case Full:
		return "full"
	case Denied:
		return "denied"
	}
	return "undecided"
}

// A SigninResult is a reply that passed every check. Only Status is set unless that is Accepted.
type SigninResult struct {
	Status           SigninStatus
	MasterKey        *crypt.PublicKey // cache it if FirstContact or MasterKeyChanged
	MasterKeyText    string           // its cleaned text
	MasterKeyChanged bool             // differs from the cached key; the signing key vouches for it, or OpenMode allows it
	FirstContact     bool             // no key was cached: trusted on first use
	AES              *crypt.Key       // shared key for published messages
	Session          *crypt.Key       // key of this minion's requests
	PublishPort      int
	PromptReturns    bool      // the master handles early returns; false for Salt
	Version          int       // dialect to speak: 3, or 2 in which Session is AES
	Time             time.Time // of the master's clock; zero if the reply has none, as from a stock master
}

// orDefault returns s, or def if s is empty.
func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// Request returns the envelope of a sign-in request with a new nonce. The token, encrypted to the cached master
// key, makes the master prove that it still has that key's private half.
func (s *Signin) Request() (Envelope, error) {
	enc, sig := orDefault(s.EncAlgo, crypt.OAEPSHA1), orDefault(s.SigAlgo, crypt.PKCS1v15SHA1)
	if !crypt.ValidEncryption(enc) {
		return Envelope{}, &AlgorithmError{Which: "enc", Name: enc}
	}
	if !crypt.ValidSigning(sig) {
		return Envelope{}, &AlgorithmError{Which: "sig", Name: sig}
	}
	if s.Key == nil {
		return Envelope{}, errors.New("cannot sign in: no key")
	}
	s.nonce, s.token = NewNonce(), nil
	load := payload.OrderedMap{
		{Key: "cmd", Value: "_auth"}, {Key: "id", Value: s.ID}, {Key: "nonce", Value: s.nonce},
		{Key: "enc_algo", Value: enc}, {Key: "sig_algo", Value: sig},
	}
	if s.AutosignGrains != nil {
		load = append(load, payload.Pair{Key: "autosign_grains", Value: s.AutosignGrains})
	}
	if s.MasterKey != nil {
		if len(s.ClearToken) == 0 {
			s.ClearToken = NewToken()
		}
		sealed, err := s.MasterKey.Encrypt(enc, s.ClearToken)
		if err != nil {
			return Envelope{}, fmt.Errorf("cannot sign in: %w", err)
		}
		s.token = s.ClearToken
		load = append(load, payload.Pair{Key: "token", Value: sealed})
	}
	pub := s.Key.Public().Text()
	if s.JoinToken != "" {
		load = append(load, payload.Pair{Key: joinField, Value: JoinMAC(s.JoinToken, s.ID, pub, s.nonce)})
	}
	load, err := s.Proof.addTo(load, s, pub, enc)
	if err != nil {
		return Envelope{}, fmt.Errorf("cannot sign in: %w", err)
	}
	load = append(load, payload.Pair{Key: "pub", Value: pub})
	return Envelope{Enc: EncClear, Load: load, Version: Version}, nil
}

// fingerHash is the default of Salt's hash_type.
const fingerHash = "sha256"

func badReply(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrBadReply, fmt.Errorf(format, args...))
}

// signinLimits limits the reply to a sign-in. It is read before it is verified.
var signinLimits = payload.Limits{Depth: 8, Elements: 256, Bytes: 256 << 10}

// Reply checks the decoded reply to the last Request. After an error nothing in the reply may be used. Errors match
// [ErrBadReply], and [ErrMasterKeyChanged] or [ErrAlgorithm] if one of these is the reason. If there is no error,
// the caller must still compare the master's key with master_finger and write it to disk.
func (s *Signin) Reply(v any) (SigninResult, error) {
	if s.nonce == "" {
		return SigninResult{}, badReply("there was no request")
	}
	outer, ok := payload.Map(v)
	if !ok {
		if text, isText := payload.Text(v); isText {
			return SigninResult{}, badReply("the master answers %.80q", text)
		}
		return SigninResult{}, badReply("it is %T, not a map", v)
	}
	if m, ok := payload.Map(outer["load"]); ok {
		return SigninResult{}, clearRefusal(m)
	}
	load, ok := payload.Bytes(outer["load"])
	if !ok {
		return SigninResult{}, badReply("its load is %T, not bytes", outer["load"])
	}
	sig, _ := payload.Bytes(outer["sig"])
	inner, err := payload.UnmarshalLimits(load, signinLimits)
	if err != nil {
		return SigninResult{}, badReply("cannot read its load: %w", err)
	}
	m, ok := payload.Map(inner)
	if !ok {
		return SigninResult{}, badReply("its load is not a map inside")
	}
	var res SigninResult
	if _, has := m["pub_key"]; has {
		if res, err = s.readAccepted(m); err != nil {
			return SigninResult{}, err
		}
	}
	if err := s.verifyReply(m, load, sig, res.MasterKey); err != nil {
		return SigninResult{}, err
	}
	if res.Status != Accepted {
		ret, has := m["ret"]
		if !has {
			return SigninResult{}, badReply("it neither accepts nor refuses")
		}
		if res.Status = statusOf(ret); res.Status == Rejected && m["denied"] == true {
			res.Status = Denied
		}
	} else if _, has := m["ret"]; has {
		return SigninResult{}, badReply("it both accepts and refuses")
	}
	s.nonce = "" // each request accepts one reply
	return res, nil
}

// clearRefusal returns the error for an unsigned reply. Such a reply is believed only if it refuses
// an algorithm, since the master may know no algorithm that both sides could verify. All it can do
// is end the attempt.
func clearRefusal(m map[string]any) error {
	ret, _ := payload.Text(m["ret"])
	switch ret {
	case "bad enc algo":
		return badReply("the master refuses: %w", &AlgorithmError{Which: "enc"})
	case "bad sig algo":
		return badReply("the master refuses: %w", &AlgorithmError{Which: "sig"})
	}
	return badReply("it is not signed")
}

// statusOf reads ret as Salt does: by Python's rules of truth, except for "full".
func statusOf(ret any) SigninStatus {
	switch ret := ret.(type) {
	case nil:
		return Rejected
	case bool:
		if !ret {
			return Rejected
		}
	case string:
		if ret == "full" {
			return Full
		}
		if ret == "" {
			return Rejected
		}
	case int64:
		if ret == 0 {
			return Rejected
		}
	}
	return Pending
}

// verifyReply checks that the master's key signed the reply and that the nonce is that of the request.
func (s *Signin) verifyReply(m map[string]any, load, sig []byte, key *crypt.PublicKey) error {
	if key == nil {
		key = s.MasterKey
	}
	// At first contact with a master that does not accept yet, there is no key to verify with. Such a reply can
	// only make the minion wait or report a refusal.
	if key != nil {
		// guard: CVE-2022-22935 TestCVE_2022_22935_ForgedAuthReply,minion:TestT21MangledSignInReplies
		if err := key.Verify(orDefault(s.SigAlgo, crypt.PKCS1v15SHA1), load, sig); err != nil {
			return badReply("outer signature: %w", ErrBadSignature)
		}
	}
	nonce, _ := payload.Text(m["nonce"])
	// guard: CVE-2022-22935 TestCVE_2022_22935_ForgedAuthReply,minion:TestT21MangledSignInReplies
	if subtle.ConstantTimeCompare([]byte(nonce), []byte(s.nonce)) != 1 {
		return badReply("nonce: %w", ErrReplayed)
	}
	return nil
}

// readAccepted reads a reply that accepts; verifyReply does the rest. The order matters: the keys are believed only
// after masterKey has decided that the master's key is.
func (s *Signin) readAccepted(m map[string]any) (SigninResult, error) {
	res := SigninResult{Status: Accepted, FirstContact: s.MasterKey == nil}
	if err := s.masterKey(m, &res); err != nil {
		return res, err
	}
	enc := orDefault(s.EncAlgo, crypt.OAEPSHA1)
	if err := s.sharedKey(enc, m, &res); err != nil {
		return res, err
	}
	if len(s.token) > 0 && !res.MasterKeyChanged {
		token, err := s.decryptField(enc, m, "token")
		// guard: CVE-2022-22935 TestCVE_2022_22935_ForgedAuthReply
		if err != nil || subtle.ConstantTimeCompare(token, s.token) != 1 {
			return res, badReply("the master failed to decrypt the random minion token")
		}
	}
	if err := s.sessionKey(enc, m, &res); err != nil {
		return res, err
	}
	port, ok := payload.Int(m["publish_port"])
	if !ok || port < 0 || port > 65535 {
		return res, badReply("publish_port is %.20v", m["publish_port"])
	}
	res.PublishPort = int(port)
	res.PromptReturns, _ = m[promptReturns].(bool)
	if at, ok := payload.Int(m[masterTime]); ok && at > 0 {
		res.Time = time.Unix(at, 0)
	}
	return res, nil
}

// sharedKey returns in res the shared key, after the master has proved that it chose it.
func (s *Signin) sharedKey(enc string, m map[string]any, res *SigninResult) error {
	if s.AES != nil && s.verifyProof(m, res.MasterKey, []byte(s.AES.Text())) == nil {
		res.AES = s.AES
		return nil
	}
	text, err := s.decryptField(enc, m, "aes")
	if err != nil {
		return err
	}
	if err := s.verifyProof(m, res.MasterKey, text); err != nil {
		return err
	}
	if res.AES, err = crypt.ParseKey(string(text)); err != nil {
		return badReply("shared key: %w", err)
	}
	return nil
}

// sessionKey reads the session key, which masters before 3006.12 and 3007.4 do not send. They are accepted only if
// MinimumVersion allows it.
func (s *Signin) sessionKey(enc string, m map[string]any, res *SigninResult) error {
	if _, has := m["session"]; !has {
		// guard: CVE-2025-62349 TestCVE_2025_62349_OldVersions,minion:TestT32OldMasterNeedsPermission
		if s.MinimumVersion != 2 {
			return badReply("the master sends no session key: it is too old (option minimum_auth_version)")
		}
		res.Version, res.Session = 2, res.AES
		return nil
	}
	text, err := s.decryptField(enc, m, "session")
	if err != nil {
		return err
	}
	if res.Session, err = crypt.ParseKey(string(text)); err != nil {
		return badReply("session key: %w", err)
	}
	res.Version = Version
	return nil
}

// decryptField decrypts a field that the master encrypted to the minion.
func (s *Signin) decryptField(enc string, m map[string]any, field string) ([]byte, error) {
	ct, ok := payload.Bytes(m[field])
	if !ok {
		return nil, badReply("it has no %s", field)
	}
	out, err := s.Key.Decrypt(enc, ct)
	if err != nil {
		return nil, badReply("%s: %w", field, err)
	}
	return out, nil
}

// verifyProof checks that the owner of the master's key chose the shared key: the proof is the key's digest, signed
// in the form of X9.31.
func (s *Signin) verifyProof(m map[string]any, key *crypt.PublicKey, aesText []byte) error {
	sig, ok := payload.Bytes(m["sig"])
	if !ok {
		return badReply("it has no inner sig")
	}
	got, err := key.RecoverX931(sig)
	if err != nil {
		return badReply("inner sig: %w", ErrBadSignature)
	}
	// guard: CVE-2022-22935 TestCVE_2022_22935_ForgedAuthReply
	if subtle.ConstantTimeCompare(got, []byte(keyDigest(aesText))) != 1 {
		return badReply("inner sig: %w", ErrBadSignature)
	}
	return nil
}

// keyDigest returns what a master signs about the shared key: the lower-case hex SHA-256 of its text.
func keyDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// masterKey decides whether to trust the key that the master shows (salt/crypt.py:verify_master). The cached key is
// trusted; at first contact any key is. A different key is trusted only if the signing key vouches for it, or in
// open mode.
func (s *Signin) masterKey(m map[string]any, res *SigninResult) error {
	text, ok := payload.Text(m["pub_key"])
	if !ok {
		return badReply("pub_key is %T", m["pub_key"])
	}
	key, err := crypt.ParsePublicKey([]byte(text))
	if err != nil {
		return badReply("pub_key: %w", err)
	}
	res.MasterKey, res.MasterKeyText = key, key.Text()
	_, has := m["pub_sig"]
	if has != s.VerifyPubkeySign {
		if has {
			return badReply("the master signs its public key, but verify_master_pubkey_sign is off here")
		}
		return badReply("the master does not sign its public key, but verify_master_pubkey_sign is on here")
	}
	same := s.MasterKey != nil && s.MasterKey.Equal(key)
	if s.VerifyPubkeySign && (!same || s.AlwaysVerifySignature) {
		if err := s.verifyVouched(m, text); err != nil {
			return err
		}
	}
	if same || s.MasterKey == nil {
		return nil
	}
	// guard: CVE-2022-22935 TestCVE_2022_22935_ForgedAuthReply
	if !s.VerifyPubkeySign && !s.OpenMode {
		shown, _ := key.Fingerprint(fingerHash)
		cached, _ := s.MasterKey.Fingerprint(fingerHash)
		return badReply("%w: it shows a key with the fingerprint %s, the cached one has %s", ErrMasterKeyChanged, shown, cached)
	}
	res.MasterKeyChanged = true
	return nil
}

// verifyVouched checks the signature of the master's key by the signing key.
func (s *Signin) verifyVouched(m map[string]any, text string) error {
	if s.VerifyKey == nil {
		return badReply("there is no key to verify the signature of the master's public key with")
	}
	b64, _ := payload.Text(m["pub_sig"])
	sig, err := base64.StdEncoding.DecodeString(b64) // ignores the newline at its end
	if err != nil {
		return badReply("pub_sig: %w", err)
	}
	if err := s.VerifyKey.Verify(orDefault(s.SigAlgo, crypt.PKCS1v15SHA1), []byte(text), sig); err != nil {
		if s.MasterKey != nil {
			return badReply("pub_sig: %w (%w)", ErrBadSignature, ErrMasterKeyChanged)
		}
		return badReply("pub_sig: %w", ErrBadSignature)
	}
	return nil
}
