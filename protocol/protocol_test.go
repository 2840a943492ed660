package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

func TestJID(t *testing.T) {
	at := time.Date(2023, 11, 14, 22, 13, 20, 123456789, time.FixedZone("", 3600))
	jid := NewJID(at)
	if jid != "20231114211320123456" {
		t.Errorf("%s", jid)
	}
	if got, ok := jid.Time(); !ok || !got.Equal(at.Truncate(time.Microsecond)) || got.Location() != time.UTC {
		t.Errorf("%v, %v", got, ok)
	}
	if got, ok := JID("20231114211320123456_77").Time(); !ok || got.Nanosecond() != 123456000 {
		t.Errorf("%v, %v", got, ok)
	}
	for _, bad := range []JID{"", "req", "nocache", "99999999999999999999", "2023"} {
		if got, ok := bad.Time(); ok {
			t.Errorf("%s is %v", bad, got)
		}
	}
}

func TestJIDClock(t *testing.T) {
	var c JIDClock
	now := time.Date(2023, 1, 1, 0, 0, 0, 999_999_000, time.UTC)
	for i, step := range []struct {
		at   time.Time
		want JID
	}{
		{now, "20230101000000999999"},
		{now, "20230101000001000000"},                        // the next microsecond is in the next second
		{now.Add(-time.Hour), "20230101000001000001"},        // the clock went back
		{now.Add(time.Hour), "20230101010000999999"},         // and forward again
		{now.Add(time.Hour + 500), "20230101010001000000"},   // less than a microsecond later
		{now.Add(2*time.Hour + 500), "20230101020000999999"}, // the rest below a microsecond is cut off
	} {
		if got := c.Next(step.at); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[JID]bool{}
	for range 8 {
		wg.Go(func() {
			for range 200 {
				jid := c.Next(now)
				mu.Lock()
				if seen[jid] || !ValidJID(string(jid)) {
					t.Errorf("%s twice", jid)
				}
				seen[jid] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 1600 {
		t.Errorf("%d ids", len(seen))
	}
}

func TestNonce(t *testing.T) {
	a, b := NewNonce(), NewNonce()
	if a == b || !validNonce(a) || !validNonce(b) {
		t.Error(a, b)
	}
}

func TestEnvelopeRoundTrip(t *testing.T) {
	for name, e := range map[string]Envelope{
		"request": {Enc: EncAES, Load: []byte{0xff, 1}, Version: 3, ID: "m", EncAlgo: "a", SigAlgo: "b"},
		"publish": {Enc: EncAES, Load: []byte("text"), SigAlgo: "b", Sig: []byte{0xff}},
		"clear":   {Enc: EncClear, Load: map[string]any{"cmd": "ping"}, Version: 3},
		"signed":  {Enc: EncClear, Load: []byte{0x81, 0xff}, Sig: []byte("text"), MasterID: "x"},
	} {
		b, err := e.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseEnvelope(b, payload.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if got, err = EnvelopeOf(e.Map()); err != nil || cmp.Diff(e, got) != "" {
			t.Errorf("%s through a map: %+v, %v", name, got, err)
		}
	}
	e := Envelope{Enc: EncClear, Load: payload.OrderedMap{{Key: "cmd", Value: "_auth"}}}
	if got, err := EnvelopeOf(e.Map()); err != nil || !cmp.Equal(got.Load, any(map[string]any{"cmd": "_auth"})) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEnvelopeRefusals(t *testing.T) {
	with := func(key string, v any) map[string]any {
		m := map[string]any{"enc": "aes", "load": []byte{1}, "version": 3, "id": "m"}
		m[key] = v
		return m
	}
	for name, c := range map[string]struct {
		v    any
		text string
	}{
		"list":          {[]any{}, BadLoad},
		"text":          {"x", BadLoad},
		"empty":         {map[string]any{}, BadLoad},
		"mixed keys":    {map[any]any{1: 2}, BadLoad},
		"no enc":        {with("enc", nil), BadLoad},
		"long enc":      {with("enc", strings.Repeat("x", 1000)), BadLoad},
		"clear number":  {map[string]any{"enc": "clear", "load": 1}, BadLoad},
		"clear no load": {map[string]any{"enc": "clear"}, BadLoad},
		"id number":     {with("id", 7), "bad load: id 7 is not a string"},
		"id bytes":      {with("id", []byte{0xff}), "bad load: id []uint8 is not a string"},
		"id NUL":        {with("id", "a\x00"), "bad load: id contains a null byte"},
	} {
		_, err := ParseEnvelope(pack(t, c.v), payload.Limits{})
		if !errors.Is(err, ErrBadLoad) || ReplyText(err) != c.text {
			t.Errorf("%s: %v, %q", name, err, ReplyText(err))
		}
		if len(err.Error()) > 200 {
			t.Errorf("%s: the error repeats what a stranger sent", name)
		}
	}
	for name, b := range map[string][]byte{"nothing": nil, "garbage": {0xc1}, "deep": bytes.Repeat([]byte{0x91}, 1000)} {
		if _, err := ParseEnvelope(b, payload.Limits{}); !errors.Is(err, ErrBadLoad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseEnvelope(pack(t, with("x", 1)), payload.Limits{Bytes: 8}); !errors.Is(err, payload.ErrLimit) {
		t.Errorf("limit: %v", err)
	}
	session := newKey(t)
	e := Envelope{Enc: EncAES, Load: seal(t, session, []any{}, ""), Version: 3, ID: "m"}
	if _, err := OpenRequest(e, session, nil); ReplyText(err) != "payload and load must be a dict" {
		t.Errorf("%v", err)
	}
}

func TestParseJob(t *testing.T) {
	const jid = "20231114221320123456"
	base := func(change map[string]any) map[string]any {
		m := map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": "*", "jid": jid, "ret": ""}
		for k, v := range change {
			if v == nil {
				delete(m, k)
			} else {
				m[k] = v
			}
		}
		return m
	}
	list := func(v ...any) []any { return append([]any{}, v...) }
	for name, c := range map[string]struct {
		change map[string]any
		want   Job
	}{
		"plain": {nil, Job{Fun: []string{"test.ping"}, Args: [][]any{{}}, Tgt: "*"}},
		"list target": {map[string]any{"tgt": list("a", "b"), "tgt_type": "list"},
			Job{Fun: []string{"test.ping"}, Args: [][]any{{}}, Tgt: list("a", "b"), TgtType: "list"}},
		"compound": {map[string]any{"fun": list("a.b", "c.d"), "arg": list(list("x"), list())},
			Job{Fun: []string{"a.b", "c.d"}, Compound: true, Args: [][]any{{"x"}, {}}, Tgt: "*"}},
		"compound of one": {map[string]any{"fun": list("a.b"), "arg": list(list("x"))},
			Job{Fun: []string{"a.b"}, Compound: true, Args: [][]any{{"x"}}, Tgt: "*"}},
		"everything": {map[string]any{"user": "sudo_alice", "delimiter": "|", "serial": int64(3), "id": "m", "master_id": "x",
			"metadata": map[string]any{"a": int64(1)}, "ret": "redis,mysql", "module_executors": list("sudo")},
			Job{Fun: []string{"test.ping"}, Args: [][]any{{}}, Tgt: "*", User: "sudo_alice", Delimiter: "|", Serial: 3,
				HasSerial: true, ID: "m", MasterID: "x", Metadata: map[string]any{"a": int64(1)}, Ret: "redis,mysql"}},
	} {
		load := base(c.change)
		got, err := ParseJob(load)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := c.want
		want.JID, want.Raw = jid, load
		want.TgtType, want.Delimiter = orDefault(want.TgtType, "glob"), orDefault(want.Delimiter, ":")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		again, err := ParseJob(got.Map())
		if err != nil {
			t.Fatal(err)
		}
		again.Raw = got.Raw
		if d := cmp.Diff(got, again); d != "" {
			t.Errorf("%s does not come back: %s", name, d)
		}
		if d := cmp.Diff(load["arg"], any(got.ArgValue())); d != "" {
			t.Errorf("%s: arg %s", name, d)
		}
		if d := cmp.Diff(load["fun"], got.FunValue()); d != "" {
			t.Errorf("%s: fun %s", name, d)
		}
	}
	for name, change := range map[string]map[string]any{
		"no fun": {"fun": nil}, "fun empty": {"fun": ""}, "fun number": {"fun": 1}, "fun empty list": {"fun": list()},
		"fun bytes": {"fun": []byte{0xff}}, "fun mixed": {"fun": list("a.b", 1), "arg": list(list(), list())},
		"no arg": {"arg": nil}, "arg text": {"arg": "x"}, "arg map": {"arg": map[string]any{}},
		"compound, too few": {"fun": list("a.b", "c.d"), "arg": list(list())},
		"compound, flat":    {"fun": list("a.b"), "arg": list("x")},
		"no tgt":            {"tgt": nil}, "tgt number": {"tgt": int64(1)}, "tgt bytes": {"tgt": []byte{0xff}}, "no jid": {"jid": nil},
		"serial text": {"serial": "3"},
	} {
		if j, err := ParseJob(base(change)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, j, err)
		}
	}
	j := Job{Fun: []string{"a.b", "c.d"}, Tgt: "*", JID: jid}
	if d := cmp.Diff(map[string]any{"fun": list("a.b", "c.d"), "arg": list(list(), list()), "tgt": "*", "jid": jid, "ret": "",
		"tgt_type": "glob"}, j.Map()); d != "" {
		t.Error(d)
	}
}

func TestParseArgs(t *testing.T) {
	upper := func(s string) any { return strings.ToUpper(s) }
	inner := map[string]any{"__kwarg__": false, "a": 1}
	args, kwargs := ParseArgs([]any{
		"plain", int64(1), nil, map[string]any{"a": 1}, inner, map[any]any{1: 2},
		map[string]any{"__kwarg__": true, "x": int64(1), "y": []any{}}, "x=two", "z-1.b=v=w", "a==b", "1a=b", "=b", "a b=c",
		"n=line\nline", "last=x\n", "é=1", map[any]any{"__kwarg__": true, "w": "w"}, []byte("b=c"), "__kwarg__", "_=",
	}, upper)
	wantArgs := []any{"plain", int64(1), nil, map[string]any{"a": 1}, inner, map[any]any{1: 2}, "a==b", "1a=b", "=b", "a b=c",
		"n=line\nline", []byte("b=c"), "__kwarg__"}
	wantKwargs := map[string]any{"x": "TWO", "y": []any{}, "z-1.b": "V=W", "last": "X", "é": "1", "w": "w", "_": ""}
	if d := cmp.Diff(wantArgs, args); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(wantKwargs, kwargs); d != "" {
		t.Error(d)
	}
	if args, kwargs = ParseArgs(nil, nil); args == nil || kwargs == nil || len(args)+len(kwargs) != 0 {
		t.Error(args, kwargs)
	}
	if _, kwargs = ParseArgs([]any{"a=1"}, nil); kwargs["a"] != "1" {
		t.Error(kwargs)
	}
	back := Kwargs(map[string]any{"a": 1, "__kwarg__": false})
	if d := cmp.Diff(map[string]any{"__kwarg__": true, "a": 1}, back); d != "" {
		t.Error(d)
	}
}

func TestReturn(t *testing.T) {
	r := Return{JID: "20231114221320123456", ID: "m", Fun: "test.arg", FunArgs: []any{int64(1), "a"},
		Return: map[string]any{"x": []byte{0xff}}, Retcode: int64(0), Success: true, Out: "nested", User: "root", MasterID: "up",
		Metadata: map[string]any{"k": "v"}}
	load := r.Load()
	if load["cmd"] != "_return" {
		t.Error(load)
	}
	got, err := ParseReturn(decode(t, pack(t, load)).(map[string]any))
	if err != nil {
		t.Fatal(err)
	}
	got.Raw = nil
	if d := cmp.Diff(r, got); d != "" {
		t.Error(d)
	}
	small := Return{JID: JIDRequest, ID: "m", Fun: []any{"a.b"}}.Load()
	want := map[string]any{"cmd": "_return", "id": "m", "jid": "req", "fun": []any{"a.b"}, "fun_args": []any{}, "return": nil,
		"retcode": nil, "success": nil}
	if d := cmp.Diff(want, small); d != "" {
		t.Error(d)
	}
	for _, jid := range []string{"req", "nocache", "20231114221320123456_1"} {
		if _, err := ParseReturn(map[string]any{"jid": jid, "id": "m", "return": nil}); err != nil {
			t.Errorf("%s: %v", jid, err)
		}
	}
	for name, change := range map[string]map[string]any{
		"id": {"id": "../m"}, "no id": {"id": nil}, "fun": {"fun": int64(1)}, "fun_args": {"fun_args": "x"},
	} {
		load := r.Load()
		for k, v := range change {
			load[k] = v
		}
		if _, err := ParseReturn(load); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	load = r.Load()
	delete(load, "return")
	if _, err := ParseReturn(load); !errors.Is(err, ErrMalformed) {
		t.Errorf("no return: %v", err)
	}
}

func TestEvents(t *testing.T) {
	for _, tag := range []string{"", "a\n\nb", "\xff"} {
		if _, err := PackEvent(tag, nil); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", tag, err)
		}
	}
	if _, err := PackEvent("x", map[string]any{"f": func() {}}); err == nil || !strings.Contains(err.Error(), `event "x"`) {
		t.Errorf("%v", err)
	}
	// Data may contain the separator between tag and data.
	b, err := PackEvent("a\nb", map[string]any{"\n\n": "\n\n", "raw": []byte("text")})
	if err != nil {
		t.Fatal(err)
	}
	tag, data, err := UnpackEvent(b)
	if err != nil || tag != "a\nb" || !cmp.Equal(data, map[string]any{"\n\n": "\n\n", "raw": []byte("text")}) {
		t.Errorf("%q %v %v", tag, data, err)
	}
	for name, body := range map[string]string{
		"empty": "", "no data": "tag", "no break": "tag\n\x80", "no tag": "\n\n\x80", "binary tag": "\xff\n\n\x80", "no value": "t\n\n",
		"list": "t\n\n\x90", "more": "t\n\n\x80\x80", "huge": "t\n\n\xdf\xff\xff\xff\xff", "mixed": "t\n\n\x81\x01\x01",
	} {
		if tag, data, err := UnpackEvent([]byte(body)); !errors.Is(err, ErrMalformed) || tag != "" || data != nil {
			t.Errorf("%s: %q, %v", name, tag, err)
		}
	}
	for name, v := range map[string]any{"nil": nil, "text": "x", "no body": map[string]any{"head": nil}, "map": map[string]any{"body": map[string]any{}}} {
		if _, err := UnframeIPC(v); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	frame, err := FrameIPC(nil)
	if err != nil || string(frame) != "\x82\xa4head\x80\xa4body\xc4\x00" {
		t.Errorf("%q, %v", frame, err)
	}
	for want, parts := range map[string][]string{
		"salt/job/1/ret/m": {"job", "1", "ret", "m"}, "salt": nil, "salt/auth": {"auth", ""}, "salt/x": {"", "x", ""},
	} {
		if got := Tagify(parts...); got != want {
			t.Errorf("%v: %s", parts, got)
		}
	}
	at := time.Date(2023, 11, 14, 23, 13, 20, 0, time.FixedZone("", 3600))
	if got := Stamp(at); got != "2023-11-14T22:13:20.000000" {
		t.Error(got)
	}
}

func TestPresence(t *testing.T) {
	aes, key := newKey(t), private(t, "minion")
	lookup := func(id string) *crypt.PublicKey {
		if id == "m" {
			return key.Public()
		}
		return nil
	}
	tok := token(t, "minion")
	good, err := SealPresence("m", tok, aes)
	if err != nil {
		t.Fatal(err)
	}
	b, err := good.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if id, err := OpenPresence(envelope(t, b), aes, lookup); err != nil || id != "m" || good.Version != 3 {
		t.Errorf("%q, %v", id, err)
	}
	for name, e := range map[string]Envelope{
		"clear":      {Enc: EncClear, Load: good.Load},
		"no load":    {Enc: EncAES},
		"other key":  {Enc: EncAES, Load: seal(t, newKey(t), map[string]any{"id": "m", "tok": tok}, "")},
		"unknown id": {Enc: EncAES, Load: seal(t, aes, map[string]any{"id": "x", "tok": tok}, "")},
		"invalid id": {Enc: EncAES, Load: seal(t, aes, map[string]any{"id": "../m", "tok": tok}, "")},
		"no id":      {Enc: EncAES, Load: seal(t, aes, map[string]any{"tok": tok}, "")},
		"list":       {Enc: EncAES, Load: seal(t, aes, []any{"m", tok}, "")},
		"deep":       {Enc: EncAES, Load: seal(t, aes, map[string]any{"id": "m", "tok": tok, "x": nest(20)}, "")},
	} {
		if id, err := OpenPresence(e, aes, lookup); !errors.Is(err, ErrBadLoad) || id != "" {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
	if _, err := OpenPresence(good, nil, lookup); !errors.Is(err, ErrBadLoad) {
		t.Errorf("no key: %v", err)
	}
}

func nest(n int) any {
	var v any
	for range n {
		v = []any{v}
	}
	return v
}

// TestVersionTwoRequest: in dialect 2 the envelope has no id, and the shared key seals requests.
func TestVersionTwoRequest(t *testing.T) {
	aes, key := newKey(t), private(t, "minion")
	r := Requester{ID: "m", Session: aes, Token: token(t, "minion"), Version: 2}
	e, nonce, err := r.Pack(map[string]any{"cmd": "x", "id": "somebody else"}, time.Unix(5, 0))
	if err != nil {
		t.Fatal(err)
	}
	if e.Version != 2 {
		t.Errorf("version %d", e.Version)
	}
	e.ID = ""
	asked := 0
	lookup := func(id string) *crypt.PublicKey {
		if asked++; id == "m" {
			return key.Public()
		}
		return nil
	}
	sealed := e.Load.([]byte)
	e.Load = bytes.Clone(sealed)
	v, err := OpenRequestWith(e, aes, lookup)
	if err != nil || v.ID() != "m" || v.Nonce() != nonce || asked != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := OpenRequestWith(e, aes, lookup); !errors.Is(err, ErrBadLoad) || asked != 1 {
		t.Errorf("what was opened in place is opened again: %v", err)
	}
	e.Load = sealed
	if _, err := OpenRequestWith(e, newKey(t), lookup); !errors.Is(err, ErrBadLoad) || asked != 1 {
		t.Errorf("keys are looked up for strangers: %v", err)
	}
	e.Version = 3
	if _, err := OpenRequestWith(e, aes, lookup); !errors.Is(err, ErrBadLoad) {
		t.Errorf("version 3 without id: %v", err)
	}
	if _, err := OpenRequest(e, aes, key.Public()); !errors.Is(err, ErrBadLoad) {
		t.Errorf("no id: %v", err)
	}
}

func TestRequesterIsComplete(t *testing.T) {
	for name, r := range map[string]Requester{"empty": {}, "no token": {Session: newKey(t)}, "no key": {Token: []byte("x")}} {
		if _, _, err := r.Pack(map[string]any{"cmd": "x"}, time.Now()); err == nil {
			t.Errorf("%s: packed", name)
		}
	}
	r := Requester{ID: "m", Session: newKey(t), Token: []byte("x")}
	if _, _, err := r.Pack(map[string]any{"cmd": "x", "v": make(chan int)}, time.Now()); err == nil ||
		!strings.HasPrefix(err.Error(), "cannot pack request x") {
		t.Errorf("%v", err)
	}
	nonce := NewNonce()
	if _, err := r.OpenReply(seal(t, r.Session, "x", nonce)[:0], nonce); !errors.Is(err, ErrReauth) {
		t.Errorf("empty reply: %v", err)
	}
	bad, err := r.Session.Seal([]byte{0xc1}, nonce)
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(any, string) (any, error){r.OpenReply, r.OpenReplyRaw} {
		if v, err := open(bad, nonce); !errors.Is(err, ErrMalformed) || v != nil {
			t.Errorf("garbage inside: %v, %v", v, err)
		}
	}
}

func TestSigninNeedsWhatItNeeds(t *testing.T) {
	key := private(t, "minion")
	for name, c := range map[string]struct {
		s    Signin
		want error
	}{
		"enc": {Signin{Key: key, EncAlgo: "none"}, ErrAlgorithm}, "sig": {Signin{Key: key, SigAlgo: "none"}, ErrAlgorithm},
		"key": {Signin{}, nil},
	} {
		if _, err := c.s.Request(); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var s Signin
	if _, err := s.Reply(map[string]any{}); !errors.Is(err, ErrBadReply) {
		t.Errorf("reply before request: %v", err)
	}
	s = Signin{ID: "m", Key: key, AutosignGrains: map[string]any{"uuid": "x", "none": nil}}
	r := ask(t, &s)
	if d := cmp.Diff(s.AutosignGrains, r.AutosignGrains); d != "" {
		t.Error(d)
	}
	for status, want := range map[SigninStatus]string{Accepted: "accepted", Pending: "pending", Rejected: "rejected", Full: "full", 0: "undecided"} {
		if fmt.Sprint(status) != want {
			t.Errorf("%d is %s", status, status)
		}
	}
	for _, c := range []struct {
		ret  any
		want SigninStatus
	}{{true, Pending}, {false, Rejected}, {"full", Full}, {nil, Rejected}, {"", Rejected}, {int64(0), Rejected}, {int64(1), Pending},
		{"something new", Pending}} {
		if got := statusOf(c.ret); got != c.want {
			t.Errorf("ret %v: %s", c.ret, got)
		}
	}
}

func TestJobDirFallsBack(t *testing.T) {
	if JobDir("x", "crc32") != JobDir("x", "sha256") || JobDir("x", "md5") == JobDir("x", "sha256") {
		t.Error(JobDir("x", "crc32"))
	}
}
