package gpg

import (
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// signed is gpg's verdict on one signature.
type signed struct {
	id, username, keyID, fingerprint, trust, status string
	named, known, owner                             bool // whether there are a user name, a key id and a fingerprint
}

// verdict is gpg's verdict on a message: on its signatures, and on encryption or decryption.
type verdict struct {
	status, keyID, username, trust string
	ok                             bool
	signatures                     []*signed

	current *signed
	primary string
}

// verdictOf reads the status of a run that verified; crypt is one that encrypted or decrypted.
func verdictOf(a *answer, crypt bool) *verdict {
	v := &verdict{}
	for _, s := range a.status {
		if !crypt || !v.crypted(s) {
			v.verified(s)
		}
	}
	return v
}

// trustWord returns the level of trust that a status keyword stands for.
func trustWord(key string) string {
	switch key {
	case "TRUST_EXPIRED":
		return "Expired"
	case "TRUST_UNDEFINED":
		return "Undefined"
	case "TRUST_NEVER":
		return "Never"
	case "TRUST_MARGINAL":
		return "Marginal"
	case "TRUST_FULLY":
		return "Fully"
	case "TRUST_ULTIMATE":
		return "Ultimate"
	}
	return ""
}

// note puts a status into the signature that gpg speaks of, if it has said of which.
func (v *verdict) note(more func(s *signed)) {
	if v.current != nil {
		v.current.status = v.status
		more(v.current)
	}
}

// verified reads a line about signatures.
func (v *verdict) verified(s status) {
	name := func() {
		id, user, _ := strings.Cut(s.value, " ")
		v.keyID, v.username = id, strings.TrimLeft(user, " ")
	}
	byUser := func(x *signed) { x.keyID, x.known, x.username, x.named = v.keyID, true, v.username, true }
	byKey := func(x *signed) { x.keyID, x.known = v.keyID, true }
	if word := trustWord(s.key); word != "" {
		v.trust = word
		if v.current != nil {
			v.current.trust = word
		}
		v.current = nil
		return
	}
	f := s.fields(10)
	switch s.key {
	case "BADSIG", "EXPSIG", "GOODSIG":
		v.status = "signature good"
		if s.key == "BADSIG" {
			v.status = "signature bad"
		} else if s.key == "EXPSIG" {
			v.status = "signature expired"
		}
		name()
		v.note(byUser)
	case "ERRSIG":
		v.status, v.keyID = "signature error", f[0]
		v.note(byKey)
	case "EXPKEYSIG", "REVKEYSIG":
		v.status = "signing key has expired"
		if s.key == "REVKEYSIG" {
			v.status = "signing key was revoked"
		}
		name()
		v.note(byKey)
	case "VALIDSIG":
		v.status = "signature valid"
		if f[9] != "" {
			v.primary = f[9]
		}
		v.note(func(x *signed) { x.fingerprint, x.owner = v.primary, true })
	case "SIG_ID":
		v.current = nil
		for i, x := range v.signatures {
			if x.id == f[0] {
				v.current = &signed{id: f[0]}
				v.signatures[i] = v.current
			}
		}
		if v.current == nil {
			v.current = &signed{id: f[0]}
			v.signatures = append(v.signatures, v.current)
		}
	case "NEWSIG":
		v.current = nil
	case "NO_PUBKEY":
		v.status, v.keyID = "no public key", s.value
	case "NO_SECKEY":
		v.status, v.keyID = "no secret key", s.value
	case "UNEXPECTED":
		v.status = "unexpected data"
	case "NODATA":
		v.status = "signature expected but not found"
	case "FAILURE":
		if v.status == "" {
			v.status = failure(s.value)
		}
	}
}

// failure returns the text of a failure that gpg reported as a number.
func failure(value string) string {
	i := strings.LastIndexByte(value, ' ')
	code, err := strconv.ParseUint(value[i+1:], 10, 64)
	if i < 0 || err != nil {
		return "error - " + value
	}
	why := ""
	switch code & 0xffffff {
	case 0x8001:
		why = "permission denied"
	case 0x8000 | 35:
		why = "file exists"
	case 0x8000 | 81:
		why = "file not found"
	case 0x8000 | 97:
		why = "not a directory"
	case 11:
		why = "incorrect passphrase"
	default:
		return "error - " + value
	}
	return value[:i] + ": " + why
}

// crypted reads a line about encryption; false if it says nothing of that.
func (v *verdict) crypted(s status) bool {
	unless := func(not, then string) {
		if v.status != not {
			v.status = then
		}
	}
	switch s.key {
	case "NODATA":
		unless("decryption failed", "no data was provided")
	case "NEED_PASSPHRASE", "BAD_PASSPHRASE", "GOOD_PASSPHRASE", "MISSING_PASSPHRASE", "KEY_NOT_CREATED", "NEED_PASSPHRASE_PIN":
		v.status = strings.ToLower(strings.ReplaceAll(s.key, "_", " "))
	case "DECRYPTION_FAILED":
		unless("no secret key", "decryption failed")
	case "NEED_PASSPHRASE_SYM":
		v.status = "need symmetric passphrase"
	case "BEGIN_DECRYPTION":
		unless("no secret key", "decryption incomplete")
	case "BEGIN_ENCRYPTION":
		v.status = "encryption incomplete"
	case "DECRYPTION_OKAY":
		v.status, v.ok = "decryption ok", true
	case "END_ENCRYPTION":
		v.status, v.ok = "encryption ok", true
	case "INV_RECP":
		if v.status == "" {
			v.status = "invalid recipient"
		} else {
			v.status = "invalid recipient: " + v.status
		}
	case "KEYEXPIRED":
		v.status = "key expired"
	case "SIG_CREATED":
		v.status = "sig created"
	case "SIGEXPIRED":
		v.status = "sig expired"
	case "WARNING", "ERROR", "ENC_TO", "USERID_HINT", "GOODMDC", "END_DECRYPTION", "CARDCTRL", "BADMDC", "SC_OP_FAILURE", "SC_OP_SUCCESS",
		"PINENTRY_LAUNCHED":
	default:
		return false
	}
	return true
}

// show returns a signature in the form of gpg.verify.
func (s *signed) show() (map[string]any, error) {
	switch {
	case !s.known:
		return nil, keyError("keyid")
	case !s.owner:
		return nil, keyError("pubkey_fingerprint")
	}
	m := map[string]any{"username": nil, "key_id": s.keyID, "fingerprint": nil, "trust_level": nil, "status": s.status}
	if s.named {
		m["username"] = s.username
	}
	if s.fingerprint != "" {
		m["fingerprint"] = s.fingerprint
	}
	if s.trust != "" {
		m["trust_level"] = s.trust
	}
	return m, nil
}

func keyError(name string) error {
	return &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
}
