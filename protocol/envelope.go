package protocol

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/protocol/payload"
)

// The two values of Envelope.Enc. Any other is refused before the load is read. Some versions of Salt treat an
// unknown value as clear, which let unauthenticated peers run commands (CVE-2016-1866).
const (
	EncClear = "clear"
	EncAES   = "aes"
)

// An Envelope is the outermost map of every request, sign-in reply and published message.
type Envelope struct {
	Enc      string // EncClear or EncAES
	Load     any    // with EncAES []byte, sealed; with EncClear map[string]any, or []byte if it is signed
	Version  int    // dialect of a request, 0 if absent; replies and published messages have none
	ID       string // minion id of an encrypted request
	EncAlgo  string // how keys for the sender of this request are to be encrypted
	SigAlgo  string // how replies to this request are to be signed, or how a published message is signed
	Sig      []byte // signature of Load
	MasterID string
}

// orderedFields returns the fields that are set, in Salt's order.
func (e Envelope) orderedFields() payload.OrderedMap {
	m := append(make(payload.OrderedMap, 0, 8), payload.Pair{Key: "enc", Value: e.Enc},
		payload.Pair{Key: "load", Value: e.Load})
	add := func(key string, v any, set bool) {
		if set {
			m = append(m, payload.Pair{Key: key, Value: v})
		}
	}
	add("version", e.Version, e.Version != 0)
	add("id", e.ID, e.ID != "")
	add("enc_algo", e.EncAlgo, e.EncAlgo != "")
	add("sig_algo", e.SigAlgo, e.SigAlgo != "")
	add("sig", e.Sig, e.Sig != nil)
	add("master_id", e.MasterID, e.MasterID != "")
	return m
}

// Marshal packs the envelope for the network.
func (e Envelope) Marshal() ([]byte, error) { return payload.Marshal(e.orderedFields()) }

// Map returns the envelope as the map that TCP frames carry, without the fields that are not set.
func (e Envelope) Map() map[string]any {
	if o, ok := e.Load.(payload.OrderedMap); ok {
		e.Load = o.Map()
	}
	return e.orderedFields().Map()
}

// ParseEnvelope reads a packed envelope within limits. Errors match [ErrBadLoad].
func ParseEnvelope(b []byte, l payload.Limits) (Envelope, error) {
	v, err := payload.UnmarshalLimits(b, l)
	if err != nil {
		return Envelope{}, badLoad("%w", err)
	}
	return EnvelopeOf(v)
}

// EnvelopeOf reads an envelope from a decoded value and ignores unknown fields. It returns an error that matches
// [ErrBadLoad] if v is not a map or has no enc or load, if enc is neither "clear" nor "aes", if an encrypted load
// is not bytes, or if the id is not a string.
func EnvelopeOf(v any) (Envelope, error) {
	m, ok := payload.Map(v)
	if !ok {
		return Envelope{}, badLoad("message is %T, not a map", v)
	}
	var e Envelope
	e.Enc, _ = payload.Text(m["enc"])
	e.Load = m["load"]
	e.Version = parseVersion(m["version"])
	e.EncAlgo, _ = payload.Text(m["enc_algo"])
	e.SigAlgo, _ = payload.Text(m["sig_algo"])
	e.MasterID, _ = payload.Text(m["master_id"])
	e.Sig, _ = payload.Bytes(m["sig"])
	switch e.Enc {
	case EncAES:
		if e.Load, ok = payload.Bytes(e.Load); !ok {
			return Envelope{}, badLoad("encrypted load is %T, not bytes", m["load"])
		}
	case EncClear:
		switch e.Load.(type) {
		case map[string]any, []byte:
		case string:
			e.Load = []byte(e.Load.(string))
		default:
			return Envelope{}, badLoad("clear load is %T", m["load"])
		}
	default:
		return Envelope{}, badLoad("enc is %.40q", fmt.Sprint(m["enc"]))
	}
	if id, has := m["id"]; has && id != nil {
		if e.ID, ok = id.(string); !ok {
			return Envelope{}, &LoadError{Reply: fmt.Sprintf("bad load: id %v is not a string", brief(id))}
		}
		if strings.IndexByte(e.ID, 0) >= 0 {
			return Envelope{}, &LoadError{Reply: "bad load: id contains a null byte"}
		}
	}
	return e, nil
}

// brief returns v if it is small enough to repeat to an unauthenticated peer, else its type.
func brief(v any) any {
	switch v := v.(type) {
	case int64, uint64, float64, bool:
		return v
	}
	return fmt.Sprintf("%T", v)
}

// parseVersion reads the dialect of a request. Salt also accepts numeric strings and floats, but no peer sends
// them, and claiming an old dialect is a way around the newer checks (CVE-2025-62349). A dialect newer than ours
// counts as ours.
func parseVersion(v any) int {
	n, ok := payload.Int(v)
	// guard: CVE-2025-62349 TestCVE_2025_62349_OldVersions
	if !ok || n < 0 {
		return 0
	}
	return int(min(n, Version))
}
