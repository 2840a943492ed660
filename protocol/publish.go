package protocol

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// A Job is a published job map (salt/master.py:ClearFuncs._prep_pub). It is published to all connected minions, or
// to those subscribed to its topics; each minion decides itself whether it is a target.
type Job struct {
	Fun       []string // function names; several, or Compound, make a compound command
	Compound  bool     // fun is an array on the wire, args an array of arrays, and return fields are maps
	Args      [][]any  // by function; maps keep their order, keyword arguments are __kwarg__ maps (see [ParseArgs])
	Tgt       any      // string, or []any for list targets
	TgtType   string   // "glob" if absent
	JID       JID
	Ret       string // names of returners, separated by commas
	User      string
	Delimiter string // ":" if absent
	Serial    int64  // counts the messages under one shared key, see [Serials]
	HasSerial bool   // false for jobs of clustered masters
	ID        string // the minion that published the job, if one did
	MasterID  string // of syndic setups; copied into the return
	Metadata  any    // copied into the return
	Raw       map[string]any
}

// ParseJob reads a job map. Errors match [ErrMalformed]. An invalid job id is an error, because it becomes a file
// name (CVE-2025-22242). Unknown fields stay in Raw, which is load itself.
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
	if j.Fun, j.Compound, err = parseFunctions(load["fun"]); err != nil {
		return Job{}, malformed("job %s: %v", jid, err)
	}
	if j.Args, err = parseArguments(load["arg"], len(j.Fun), j.Compound); err != nil {
		return Job{}, malformed("job %s: %v", jid, err)
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

// textOr returns v if it is a string that is not empty, else def.
func textOr(v any, def string) string {
	if s, ok := payload.Text(v); ok && s != "" {
		return s
	}
	return def
}

// parseFunctions reads fun: a name, or an array of names for a compound command.
func parseFunctions(v any) (names []string, compound bool, err error) {
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

// parseArguments reads arg: an array of arguments, or one array for each of n functions.
func parseArguments(v any, n int, compound bool) ([][]any, error) {
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

// FunValue returns fun as it travels: a string, or an array for compound commands.
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

// ArgValue returns arg as it travels: an array, or an array of arrays for compound commands.
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

// Map returns the job map: a copy of Raw in which the fields of j replace their entries. Fields that have their
// default are left out, except those that Salt always sends.
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

// SealPublish packs a job map for the publish channel under the shared key. key signs it, unless it is nil (options
// sign_pub_messages and publish_signing_algorithm; "" means PKCS1v15-SHA1). It returns the packed envelope, which
// is the same for all minions, so it is encoded once.
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

// OpenPublish opens a message of the publish channel and returns the job map, serial included.
//
// Every accepted minion knows the shared key and could forge messages, so only the signature proves that the master
// sent it (CVE-2017-7893). A signature that is present is always verified; requireSig also refuses messages without
// one. The caller drops the message after [ErrBadSignature] or [ErrUnsigned]. An error that matches [ErrReauth]
// means that the shared key has changed. A message that is not encrypted is [ErrBadLoad] (CVE-2016-1866).
//
// Maps among the arguments are payload.OrderedMap.
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
	v, err := payload.UnmarshalShared(packed, payload.Limits{}, "arg")
	if err != nil {
		return nil, fmt.Errorf("%w published message: %w", ErrMalformed, err)
	}
	job, ok := payload.Map(v)
	if !ok {
		return nil, malformed("published message: it is %T, not a map", v)
	}
	return job, nil
}

// Serials detects repeated messages: a master counts upwards under each shared key (salt/crypt.py:Crypticle.loads).
// Use a new Serials for a new shared key. The zero value is ready for use by any number of goroutines.
type Serials struct {
	mu   sync.Mutex
	last int64 // guarded by mu
}

// Accept records the serial of a job. It returns [ErrReplayed] if the serial is not higher than all before. Jobs of
// clustered masters have no serial and pass.
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

// Last returns the highest serial so far, for Resume after a restart.
func (s *Serials) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Resume sets the highest serial to that of an earlier process, unless it is already higher.
func (s *Serials) Resume(last int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, last)
}

// Topics returns the ids under whose topics a job is published on a filtered channel; nil means all
// minions. A list target given as an array is used as it is. For glob, pcre and list targets
// matched returns the ids. Jobs with another kind of target go to all minions, and so do jobs that
// match no minion, as in Salt (salt/channel/server.py:wrap_payload).
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
