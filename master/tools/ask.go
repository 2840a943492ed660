package tools

import (
	"context"
	"crypto/subtle"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/cliargs"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/audit"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// asker is the sender of a clear request.
type asker struct {
	name string
	// trusted askers may do everything: they have the key of root or of the master's user.
	trusted bool
	// external askers have a token or a password, the others a key.
	external bool
	rules    []any // from external_auth or ACL
}

// errCredentials means that neither key nor token nor password is valid.
var errCredentials = errors.New("the token, password or key is not valid")

// ask authenticates the sender (salt/auth/__init__.py, LoadAuth.check_authentication). creds holds a token or
// password: for a publish it is the kwargs, else the request itself.
func (s *Server) ask(ctx context.Context, peer string, load, creds map[string]any) (asker, error) {
	if id, ok := creds["token"]; ok {
		text, _ := payload.Text(id)
		if s.Auth == nil {
			return asker{}, errCredentials
		}
		t, alive := s.Auth.Token(text)
		if !alive {
			return asker{}, errCredentials
		}
		return s.external(t)
	}
	if _, ok := creds["eauth"]; ok {
		name := fields.Text(creds, "username")
		proven, ok := s.tries.Try(peer, name)
		if s.Auth == nil || !ok {
			return asker{name: name}, errCredentials
		}
		t, err := s.Auth.Check(ctx, fields.Text(creds, "eauth"), name, password(creds))
		if err != nil {
			return asker{name: name}, err
		}
		proven()
		return s.external(t)
	}
	return s.byKey(load)
}

// external returns the asker for a token's owner. Owners with a tenant are refused, because nothing here is
// restricted to a tenant.
func (s *Server) external(t eauth.Token) (asker, error) {
	if tenant, err := s.Auth.Tenant(t); err != nil || tenant != "" {
		return asker{name: t.Name}, errCredentials
	}
	return asker{name: t.Name, external: true, rules: s.Auth.Rules(t)}, nil
}

// password returns the secret of a request. The system "sharedsecret" has its own field name.
func password(creds map[string]any) string {
	for _, key := range [...]string{"password", "sharedsecret"} {
		if v, ok := creds[key]; ok && v != nil {
			return pytext.Str(v)
		}
	}
	return ""
}

// byKey checks the key of a clear request (authenticate_key). root, the master's user and sudo_x may use the
// key of either of the first two; others must use their own.
func (s *Server) byKey(load map[string]any) (asker, error) {
	who := asker{name: fields.Text(load, "user")}
	shown := fields.Text(load, "key")
	fits := func(user string) bool {
		want, known := s.keys[user]
		return subtle.ConstantTimeCompare([]byte(want), []byte(shown)) == 1 && known && shown != ""
	}
	who.trusted = fits("root") || fits(s.User)
	if name, sudo := strings.CutPrefix(who.name, "sudo_"); who.trusted && sudo && s.SudoACL &&
		len(s.ACL) > 0 {
		who.trusted, who.rules = false, rulesOf(s.ACL, name)
		if len(who.rules) == 0 {
			return who, errCredentials
		}
		return who, nil
	}
	if who.trusted {
		return who, nil
	}
	if who.name == "root" || who.name == s.User || strings.HasPrefix(who.name, "sudo_") ||
		!fits(who.name) {
		return who, errCredentials
	}
	if who.rules = rulesOf(s.ACL, who.name); len(who.rules) == 0 {
		return who, errCredentials // as in stock for users with an empty list
	}
	return who, nil
}

// denied applies Salt's publisher_acl_blacklist to a request.
func (s *Server) denied(who asker, load map[string]any) bool {
	return s.Denies(who.name, fields.Functions(load["fun"])...) ||
		s.Denies(fields.Text(load, "user"))
}

// Denies reports whether DeniedUsers or DeniedFunctions deny a user or functions. As in Salt this applies to
// every job, whatever its origin.
func (s *Server) Denies(user string, funs ...string) bool {
	named := func(patterns []string, name string) bool {
		return slices.ContainsFunc(patterns,
			func(x string) bool { return eauth.MatchName(x, name) })
	}
	return named(s.DeniedUsers, user) || slices.ContainsFunc(funs,
		func(fun string) bool { return named(s.DeniedFunctions, fun) })
}

// mayPublish reports whether the sender may publish a request: every function of a compound command
// (CVE-2013-4435), on the target. find_job is always allowed, because waiting needs it.
func (s *Server) mayPublish(who asker, load map[string]any, args []any) (tgtType string, tgt any,
	ok bool) {
	tgtType, tgt = fields.Text(load, "tgt_type"), load["tgt"]
	if who.trusted {
		return tgtType, tgt, true
	}
	list, many := payload.List(load["fun"])
	if !many {
		list = []any{load["fun"]}
	}
	var funs []string
	var each [][]any
	for i, f := range list {
		fun, ok := payload.Text(f)
		if !ok {
			return tgtType, tgt, false
		}
		arg := args
		if many {
			arg = nil
			if i < len(args) {
				arg, _ = payload.List(args[i])
			}
		}
		funs, each = append(funs, fun), append(each, arg)
	}
	if tgtType == "" {
		tgtType = target.TypeGlob
	}
	if s.rules.MayPublish(eauth.Everywhere(who.rules), funs, each, tgtType, tgt) {
		return tgtType, tgt, true
	}
	kwargs, _ := payload.Map(load["kwargs"])
	tgtType, tgt, err := s.Targets.ByID(tgtType, tgt, fields.Text(kwargs, "delimiter"))
	return tgtType, tgt, err == nil && s.rules.MayPublish(who.rules, funs, each, tgtType, tgt)
}

// withoutSecrets returns a request's kwargs without secrets, for storing.
func withoutSecrets(kwargs map[string]any) map[string]any {
	out := maps.Clone(kwargs)
	for _, key := range [...]string{"token", "password", "sharedsecret", "username", "eauth"} {
		delete(out, key)
	}
	return out
}

// Call is a tool's request to call a runner or wheel function.
type Call struct {
	// Kind is "runner" or "wheel".
	Kind, Fun string
	Args      []any
	Kwargs    map[string]any
	// Named means that the request had the arguments by name, not as "arg" and "kwarg".
	Named bool
	// Saltenv, if not nil, is the value of the function's parameter saltenv, if it has one.
	Saltenv any
	// User is the caller. Wait is set for wheel functions, whose result the tool waits for; a runner's arrives
	// as an event.
	User string
	Wait bool
}

// ErrNoFunction is returned by a Caller for a function that does not exist.
var ErrNoFunction = errors.New("there is no such function")

// CallResult holds the job id and tag of a call's events, and its result if it was waited for.
type CallResult struct {
	JID, Tag string
	Data     map[string]any
}

// call answers a request for a runner or wheel function (ClearFuncs.runner, ClearFuncs.wheel).
func (s *Server) call(ctx context.Context, peer, kind string, load map[string]any,
	ordered func() map[string]any) any {
	refused := func(name, text string) any {
		return map[string]any{"error": map[string]any{"name": name, "message": text}}
	}
	who, err := s.ask(ctx, peer, load, load)
	kindOf := "user"
	for _, k := range [...]string{"token", "eauth"} {
		if _, ok := load[k]; ok && kindOf == "user" {
			kindOf = k
		}
	}
	name := map[string]string{"user": "UserAuthenticationError",
		"token": "TokenAuthenticationError", "eauth": "EauthAuthenticationError"}[kindOf]
	q := callOf(kind, load)
	entry := audit.Entry{Via: "local", From: peer, User: who.name,
		EAuth: fields.Text(load, "eauth"), Kind: kind, Fun: []string{q.Fun}, Outcome: audit.Denied}
	defer func() { s.Account.Record(entry) }()
	switch {
	case err != nil:
	case who.trusted, s.rules.MayRun(who.rules, kind, q.Fun, q.Args, q.Kwargs):
	default:
		err = errors.New("not allowed")
	}
	if err != nil {
		s.Log.Warn("Refused a "+kind+" function", "user", fields.Brief(who.name), "fun",
			fields.Brief(q.Fun), "peer", peer, "err", err)
		return refused(name, `Authentication failure of type "`+kindOf+`" occurred for user `+
			fields.Brief(who.name)+".")
	}
	entry.Outcome = audit.Failed
	if s.Caller == nil {
		return refused("SaltInvocationError", "this master has no "+kind+" functions")
	}
	if strings.HasPrefix(who.name, "sudo_") {
		who.name = s.User
	}
	if load := ordered(); load != nil {
		q = callOf(kind, load)
	}
	q.User = who.name
	if !who.trusted {
		q.Saltenv = nil // rules check arguments, and this would count as one
	}
	if !q.Wait {
		s.admit()
	}
	res, err := s.Caller.CallFor(ctx, q)
	if errors.Is(err, ErrNoFunction) {
		return refused("KeyError", "'"+q.Fun+"' is not available.")
	}
	if err != nil {
		return refused("SaltInvocationError", err.Error())
	}
	entry.Outcome, entry.JID = audit.Allowed, res.JID
	s.Log.Info("User called a function of the master", "user", who.name, "fun", kind+"."+q.Fun,
		"jid", res.JID)
	if kind == "wheel" {
		return map[string]any{"tag": res.Tag, "data": res.Data}
	}
	return map[string]any{"tag": res.Tag, "jid": res.JID}
}

// callOf parses a request's function and arguments. A runner's are {"arg": …, "kwarg": …} under "kwarg". A
// wheel's are in the request itself, as "arg" and "kwarg" or by name.
func callOf(kind string, load map[string]any) Call {
	c := Call{Kind: kind, Fun: fields.Text(load, "fun"), Wait: kind == "wheel"}
	inner, hasInner := payload.Map(load["kwarg"])
	_, hasArg := load["arg"]
	named := kind == "wheel" && !(hasArg && hasInner)
	c.Named = named && !hasArg
	from := load
	if hasInner && (named || kind != "wheel") {
		from = inner
	}
	list, _ := payload.List(from["arg"])
	c.Args, c.Kwargs = cliargs.Values(list, []any{"*"})
	if inner, ok := payload.Map(from["kwarg"]); ok {
		maps.Copy(c.Kwargs, inner)
	}
	if !named {
		c.Saltenv = load["saltenv"]
		return c
	}
	for k, v := range load {
		switch k {
		case "client", "cmd", "fun", "arg", "kwarg", "key", "user", "token", "eauth", "username",
			"password", "sharedsecret", "print_event", "full_return", "id", "__jid__", "__tag__",
			"__user__":
		default:
			c.Kwargs[k] = v
		}
	}
	return c
}

// makeToken answers mk_token with a token, or "" if the credentials are wrong.
func (s *Server) makeToken(ctx context.Context, peer string, load map[string]any) any {
	name := fields.Text(load, "username")
	proven, ok := s.tries.Try(peer, name)
	if s.Auth == nil || !ok {
		return ""
	}
	t, err := s.Auth.Login(ctx, fields.Text(load, "eauth"), name, password(load))
	entry := audit.Entry{Via: "local", From: peer, User: fields.Text(load, "username"),
		EAuth: fields.Text(load, "eauth"), Kind: "login", Outcome: audit.Allowed}
	if err != nil {
		entry.Outcome = audit.Denied
	}
	s.Account.Record(entry)
	if err != nil {
		return ""
	}
	proven()
	return tokenData(t.ID, t.Name, t.EAuth, t.Start, t.Expire)
}

// getToken answers get_token with the data of a token, or with an empty answer.
func (s *Server) getToken(load map[string]any) any {
	id, ok := payload.Text(load["token"])
	if !ok || s.Auth == nil {
		return false
	}
	t, alive := s.Auth.Token(id)
	if !alive {
		return map[string]any{}
	}
	return tokenData(t.ID, t.Name, t.EAuth, t.Start, t.Expire)
}

func tokenData(id, name, eauth string, start, expire time.Time) map[string]any {
	return map[string]any{"token": id, "name": name, "eauth": eauth,
		"start": float64(start.UnixMicro()) / 1e6, "expire": float64(expire.UnixMicro()) / 1e6}
}
