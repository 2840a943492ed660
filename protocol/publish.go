package protocol

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// Job is a published job map (salt/master.py:ClearFuncs._prep_pub). A job is published to every connected minion, or to
// those whose topic it has; each decides itself whether it is meant.
type Job struct {
	Fun       []string // function names; more than one, or Compound, is a compound command
	Compound  bool     // fun is an array on the wire, args an array of arrays, and return fields are maps
	Args      [][]any  // arguments of each function, keyword arguments inside as __kwarg__ maps; see [ParseArgs]
	Ordered   [][]any  // Args with the maps in them as payload.OrderedMap; nil where no map has an order that matters
	Tgt       any      // string, or []any for list targets
	TgtType   string   // "glob" when absent
	JID       JID
	Ret       string // comma separated names of returners
	User      string
	Delimiter string // ":" when absent
	Serial    int64  // counts the messages under one shared key; see [Serials]
	HasSerial bool   // clustered masters send none
	ID        string // asking minion, in jobs that a minion published
	MasterID  string // in syndic setups; copied into the return
	Metadata  any    // copied into the return
	Raw       map[string]any
}

// ParseJob reads a job map. Errors match [ErrMalformed]. A job id that is none is an error, for it becomes a file name
// (CVE-2025-22242). Unknown fields stay in Raw, which is load itself.
func ParseJob(load map[string]any) (Job, error) {
	j := Job{Raw: load, Tgt: load["tgt"], Metadata: load["metadata"]}
	jid, _ := payload.Text(load["jid"])
	// guard: CVE-2025-22242 minion:TestT31HostileJobs
	if !ValidJID(jid) {
		return Job{}, malformed("job: jid is %.40q", fmt.Sprint(load["jid"]))
	}
	j.JID = JID(jid)
	switch tgt := j.Tgt.(type) {
	case string, []any:
	case []byte:
		return Job{}, malformed("job %s: tgt is not UTF-8", jid)
	default:
		return Job{}, malformed("job %s: tgt is %T", jid, tgt)
	}
	var err error
	if j.Fun, j.Compound, err = functions(load["fun"]); err != nil {
		return Job{}, malformed("job %s: %v", jid, err)
	}
	if j.Args, err = arguments(load["arg"], len(j.Fun), j.Compound); err != nil {
		return Job{}, malformed("job %s: %v", jid, err)
	}
	if inOrder(load["arg"]) {
		j.Ordered = j.Args
		load["arg"] = payload.Plain(load["arg"])
		j.Args, _ = arguments(load["arg"], len(j.Fun), j.Compound)
	}
	j.TgtType = textOr(load["tgt_type"], "glob")
	j.Ret = textOr(load["ret"], "")
	j.User = textOr(load["user"], "")
	j.Delimiter = textOr(load["delimiter"], ":")
	j.ID = textOr(load["id"], "")
	j.MasterID = textOr(load["master_id"], "")
	if serial, has := load["serial"]; has {
		if j.Serial, j.HasSerial = payload.Int(serial); !j.HasSerial {
			return Job{}, malformed("job %s: serial is %T", jid, serial)
		}
	}
	return j, nil
}

func textOr(v any, def string) string {
	if s, ok := payload.Text(v); ok && s != "" {
		return s
	}
	return def
}

func functions(v any) (names []string, compound bool, err error) {
	list, compound := v.([]any)
	if !compound {
		list = []any{v}
	}
	for _, f := range list {
		name, ok := payload.Text(f)
		if !ok || name == "" {
			return nil, false, fmt.Errorf("fun is %T", f)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, false, errors.New("fun is empty")
	}
	return names, compound, nil
}

func arguments(v any, n int, compound bool) ([][]any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("arg is %T, not an array", v)
	}
	if !compound {
		return [][]any{list}, nil
	}
	if len(list) != n {
		return nil, fmt.Errorf("arg has %d members for %d functions", len(list), n)
	}
	out := make([][]any, n)
	for i, a := range list {
		if out[i], ok = a.([]any); !ok {
			return nil, fmt.Errorf("arg %d is %T, not an array", i, a)
		}
	}
	return out, nil
}

// FunValue returns fun as it travels: text, or an array for compound commands.
func (j Job) FunValue() any {
	if !j.Compound && len(j.Fun) == 1 {
		return j.Fun[0]
	}
	out := make([]any, len(j.Fun))
	for i, f := range j.Fun {
		out[i] = f
	}
	return out
}

// ArgValue returns arg as it travels: an array, of arrays for compound commands.
func (j Job) ArgValue() []any {
	if !j.Compound && len(j.Fun) == 1 {
		if len(j.Args) == 0 || j.Args[0] == nil {
			return []any{}
		}
		return j.Args[0]
	}
	out := make([]any, len(j.Fun))
	for i := range out {
		out[i] = []any{}
		if i < len(j.Args) && j.Args[i] != nil {
			out[i] = j.Args[i]
		}
	}
	return out
}

// Map returns the job map: a copy of Raw with the fields of j over it. Fields with their default are left out, except
// for those that Salt always sends.
func (j Job) Map() map[string]any {
	m := make(map[string]any, len(j.Raw)+8)
	maps.Copy(m, j.Raw)
	m["fun"], m["arg"], m["tgt"], m["jid"], m["ret"] = j.FunValue(), j.ArgValue(), j.Tgt, string(j.JID), j.Ret
	m["tgt_type"] = orDefault(j.TgtType, "glob")
	set := func(key string, v any, set bool) {
		if set {
			m[key] = v
		} else {
			delete(m, key)
		}
	}
	set("user", j.User, j.User != "")
	set("delimiter", j.Delimiter, j.Delimiter != "" && j.Delimiter != ":")
	set("serial", j.Serial, j.HasSerial)
	set("id", j.ID, j.ID != "")
	set("master_id", j.MasterID, j.MasterID != "")
	set("metadata", j.Metadata, j.Metadata != nil)
	return m
}

// SealPublish packs a job map for the publish channel under the shared key, signed with the master's key unless key is
// nil (options sign_pub_messages and publish_signing_algorithm; "" means PKCS1v15-SHA1). The result is the packed
// envelope, encoded once for all minions.
func SealPublish(job map[string]any, aes *crypt.Key, key *crypt.PrivateKey, sigAlgo string) ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("cannot publish job %v: %w", job["jid"], err) }
	packed, err := payload.Marshal(job)
	if err != nil {
		return fail(err)
	}
	sealed, err := aes.Seal(packed, "")
	if err != nil {
		return fail(err)
	}
	e := payload.OrderedMap{{Key: "enc", Value: EncAES}, {Key: "load", Value: sealed}}
	if key != nil {
		sigAlgo = orDefault(sigAlgo, crypt.PKCS1v15SHA1)
		sig, err := key.Sign(sigAlgo, sealed)
		if err != nil {
			return fail(err)
		}
		e = append(e, payload.Pair{Key: "sig_algo", Value: sigAlgo}, payload.Pair{Key: "sig", Value: sig})
	}
	b, err := payload.Marshal(e)
	if err != nil {
		return fail(err)
	}
	return b, nil
}

// OpenPublish opens a message of the publish channel and returns the job map, serial included. Every accepted minion
// knows the shared key and could forge messages, so the signature is what counts (CVE-2017-7893): one that is present is
// always verified; requireSig refuses messages without one with [ErrUnsigned]. A wrong one is [ErrBadSignature], and the
// message is dropped without further ado. An error that matches [ErrReauth] means that the shared key has changed; what
// is not encrypted at all is [ErrBadLoad] (CVE-2016-1866). Maps among the arguments of the job are payload.OrderedMap if one has more than one
// key; [ParseJob] makes plain ones of them.
func OpenPublish(e Envelope, aes *crypt.Key, master *crypt.PublicKey, requireSig bool) (map[string]any, error) {
	sealed, ok := e.Load.([]byte)
	// guard: CVE-2016-1866 TestCVE_2016_1866_ClearPublish
	if e.Enc != EncAES || !ok {
		return nil, badLoad("published message is not encrypted")
	}
	switch {
	case e.Sig != nil:
		if master == nil {
			return nil, fmt.Errorf("%w: its key is not known", ErrBadSignature)
		}
		// guard: CVE-2017-7893 TestCVE_2017_7893_ForgedPublish,minion:TestT10ForgedPublish
		if err := master.Verify(orDefault(e.SigAlgo, crypt.PKCS1v15SHA1), sealed, e.Sig); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadSignature, err)
		}
	// guard: CVE-2017-7893 TestCVE_2017_7893_ForgedPublish,minion:TestT10ForgedPublish
	case requireSig:
		return nil, ErrUnsigned
	}
	if aes == nil {
		return nil, fmt.Errorf("%w: no shared key", ErrReauth)
	}
	packed, err := aes.Open(sealed, "")
	if errors.Is(err, crypt.ErrAuth) {
		return nil, fmt.Errorf("%w: published message: %w", ErrReauth, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w published message: %w", ErrMalformed, err)
	}
	v, err := payload.Unmarshal(packed)
	if err != nil {
		return nil, fmt.Errorf("%w published message: %w", ErrMalformed, err)
	}
	job, ok := payload.Map(v)
	if !ok {
		return nil, malformed("published message: it is %T, not a map", v)
	}
	keepOrder(job, packed, "arg")
	return job, nil
}

// Serials drops repeated messages of one shared key: a master counts upwards under each (salt/crypt.py:Crypticle.loads).
// A new shared key needs a new Serials. The zero value is ready, for any number of goroutines.
type Serials struct {
	mu   sync.Mutex
	last int64 // guarded by mu
}

// Accept records the serial of a job, or returns [ErrReplayed] if it is not above all before. Jobs without a serial,
// as clustered masters send them, pass.
func (s *Serials) Accept(j Job) error {
	if !j.HasSerial {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// guard: CVE-2022-22936 TestCVE_2022_22936_Replays
	if j.Serial <= s.last {
		return fmt.Errorf("%w: serial %d of job %s is not above %d", ErrReplayed, j.Serial, j.JID, s.last)
	}
	s.last = j.Serial
	return nil
}

// Last returns the highest serial so far, to be kept across restarts.
func (s *Serials) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Resume sets the highest serial to what was kept, unless it is higher already.
func (s *Serials) Resume(last int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, last)
}

// Topics returns the minions whose topics a job is published under on a channel with filtering, nil for everybody. The
// ids of a list target given as an array are taken as they are; matched is asked for the ids of glob, pcre and list
// targets; all other targets go to everybody, and so does a job that matches nobody, as in Salt
// (salt/channel/server.py:wrap_payload).
func Topics(tgt any, tgtType string, matched func() []string) []string {
	switch tgtType {
	case "list":
		if ids, ok := tgt.([]any); ok {
			var out []string
			for _, id := range ids {
				if s, ok := payload.Text(id); ok {
					out = append(out, s)
				}
			}
			return out
		}
	case "glob", "pcre", "":
	default:
		return nil
	}
	if ids := matched(); len(ids) > 0 {
		return ids
	}
	return nil
}
