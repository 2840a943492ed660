// Package eauth implements Salt's external authentication: systems such as "file" or "pam" that check
// passwords, tokens, and the rules of the option external_auth.
//
// Rules match functions in full. Stock Salt matches only the beginning, so that a rule for "test.p" also grants
// "test.provider". Salt's sources: salt/auth/__init__.py, salt/utils/minions.py.
package eauth

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/master/internal/peercred"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// ErrDenied means that the credentials are wrong. It has no details.
var ErrDenied = errors.New("could not authenticate using provided credentials")

// System checks credentials.
type System interface {
	// Authenticate reports whether the password is the user's, and returns the user's groups. config is the
	// system's part of external_auth. An error means that the check failed to run.
	Authenticate(ctx context.Context, config map[string]any, username, password string) (ok bool,
		groups []string, err error)
}

// Expander is a System whose rules may name minions in its own notation, such as "ldap" for the computers of a
// unit.
type Expander interface {
	// Expand returns a user's rules with that notation replaced by minion ids. It is called for every request.
	Expand(ctx context.Context, rules []any) ([]any, error)
}

// Options configure an Auth.
type Options struct {
	// Config is Salt's external_auth: rules by system and name.
	Config map[string]any
	// Systems are the available systems; nil means [Systems].
	Systems map[string]System
	// TokenLife is the lifetime of a token; 0 means Salt's 12 hours. MaxTokens limits the number of tokens; 0
	// means 10,000.
	TokenLife time.Duration
	MaxTokens int
	// Match returns the minions that a target matches. Without it, rules for minions allow nothing.
	Match func(tgtType string, tgt any) ([]string, error)
	// Permissive is Salt's permissive_acl: rules for "*" apply in addition to those for a name.
	Permissive bool
	// Tenant returns the tenant of a user, or "" for a user who sees everything. A user for whom it returns an
	// error cannot log in. If it is nil, no user has a tenant. See TenantRules.
	Tenant func(t Token) (string, error)
	Log    *slog.Logger
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Auth authenticates users and holds their tokens. Its methods are safe for concurrent use.
type Auth struct {
	o        Options
	refusals *ratelimit.Limiter // for log lines about peers

	mu     sync.Mutex // guards tokens
	tokens map[string]Token
}

// Token represents an authenticated user.
type Token struct {
	ID          string
	Name, EAuth string
	Groups      []string
	// UID is the decimal user id of a caller that the kernel identified (see [Auth.Peer]), otherwise "".
	UID           string
	Start, Expire time.Time
}

// defaultTokens is the default of Options.MaxTokens.
const defaultTokens = 10_000

// New returns an Auth. It validates the rules, so that mistakes are found at start.
func New(o Options) (*Auth, error) {
	if o.Systems == nil {
		o.Systems = Systems()
	}
	if o.TokenLife <= 0 {
		o.TokenLife = 12 * time.Hour
	}
	if o.MaxTokens <= 0 {
		o.MaxTokens = defaultTokens
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	config := maps.Clone(o.Config)
	for name, v := range o.Config {
		// guard: CVE-2024-38825 master/restapi:TestCVE_2024_38825_NoLoginByCertificateAlone
		if _, ok := o.Systems[name]; !ok {
			return nil, fmt.Errorf("external_auth: system %q is unknown; use one of %s", name,
				strings.Join(names(o.Systems), ", "))
		}
		rules := textMap(v)
		if rules == nil && v != nil {
			return nil, fmt.Errorf("external_auth: %s must be a map of names and rules", name)
		}
		if name == PeerSystem && !peercred.Supported {
			return nil, errors.New("external_auth: peer is not available: " +
				"this system does not report who is at the other end of a unix socket")
		}
		if v != nil {
			config[name] = rules
		}
	}
	o.Config = config
	return &Auth{o: o, tokens: make(map[string]Token), refusals: ratelimit.New(1./60, 1)}, nil
}

// textMap returns a map with text as keys, nil if v is not a map: a user id in YAML is a number.
func textMap(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, rules := range v {
			out[pytext.Str(key)] = rules
		}
		return out
	}
	return nil
}

func names(m map[string]System) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Login checks credentials and creates a token. It returns ErrDenied if they are wrong.
func (a *Auth) Login(ctx context.Context, eauth, username, password string) (Token, error) {
	t, err := a.Check(ctx, eauth, username, password)
	if err != nil {
		return Token{}, err
	}
	var id [32]byte
	_, _ = rand.Read(id[:]) // never fails
	t.ID = hex.EncodeToString(id[:])
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.makeRoom(t) {
		return Token{}, errors.New("too many tokens are in use")
	}
	a.tokens[t.ID] = t
	return t, nil
}

// makeRoom reports whether there is room for another token of t's user. A user whose tokens are as many as those that
// are free loses the oldest one, so that repeated log-ins of one user keep no other user out. Callers hold mu.
func (a *Auth) makeRoom(t Token) bool {
	if 2*len(a.tokens) < a.o.MaxTokens {
		return true
	}
	a.sweep()
	own, oldest := 0, Token{}
	for _, x := range a.tokens {
		if x.EAuth != t.EAuth || x.Name != t.Name {
			continue
		}
		if own++; own == 1 || x.Start.Before(oldest.Start) {
			oldest = x
		}
	}
	// guard: tokens-of-one-user TestTokensAreShared instead: len(a.tokens) < a.o.MaxTokens
	if own < a.o.MaxTokens-len(a.tokens) {
		return true
	}
	delete(a.tokens, oldest.ID)
	return own > 0
}

// Check checks credentials without creating a token; the result has no ID.
func (a *Auth) Check(ctx context.Context, eauth, username, password string) (Token, error) {
	config, enabled := a.o.Config[eauth].(map[string]any)
	sys := a.o.Systems[eauth]
	if !enabled || sys == nil || username == "" || len(username) > 256 || len(password) > 4096 {
		why := "the name is missing, or name or password are too long"
		if !enabled || sys == nil {
			why = "external_auth does not have this system"
		}
		a.o.Log.Warn("Authentication failed", "eauth", brief(eauth), "user", brief(username),
			"err", why)
		return Token{}, ErrDenied
	}
	ok, groups, err := sys.Authenticate(ctx, config, username, password)
	if err != nil {
		a.o.Log.Error("Cannot authenticate", "eauth", eauth, "user", brief(username), "err", err)
		return Token{}, ErrDenied
	}
	if !ok {
		a.o.Log.Warn("Authentication failed", "eauth", eauth, "user", brief(username))
		return Token{}, ErrDenied
	}
	if eauth == PeerSystem {
		return a.Peer(ctx)
	}
	now := a.o.Now()
	t := Token{Name: username, EAuth: eauth, Groups: groups, Start: now,
		Expire: now.Add(a.o.TokenLife)}
	if _, err := a.Tenant(t); err != nil {
		a.o.Log.Warn("Log-in refused", "eauth", eauth, "user", brief(username), "err", err)
		return Token{}, ErrDenied
	}
	return t, nil
}

// brief shortens text from unauthenticated peers for the log.
func brief(s string) string {
	if len(s) > 64 {
		s = s[:64] + "…"
	}
	return s
}

// Token returns a valid token.
func (a *Auth) Token(id string) (Token, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.tokens[id]
	// guard: CVE-2021-3144 master/restapi:TestCVE_2021_3144_TokensExpire
	if ok && !a.o.Now().Before(t.Expire) {
		delete(a.tokens, id)
		return Token{}, false
	}
	return t, ok
}

// Revoke ends a token.
func (a *Auth) Revoke(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tokens, id)
}

// sweep removes expired tokens. The caller holds mu.
func (a *Auth) sweep() {
	now := a.o.Now()
	for id, t := range a.tokens {
		if !now.Before(t.Expire) {
			delete(a.tokens, id)
		}
	}
}

// Shown returns the rules that a log-in shows to its user (salt/netapi/__init__.py: sum_permissions): those for
// the exact name, for everybody, and for the user's groups, without duplicates. [Auth.Rules] decides what the
// user may do.
func (a *Auth) Shown(t Token) []any {
	config, _ := a.o.Config[t.EAuth].(map[string]any)
	keys := []string{t.Name, "*"}
	if t.UID != "" {
		keys = append(keys, t.UID)
	}
	for _, group := range t.Groups {
		keys = append(keys, group+"%")
	}
	var rules []any
	for _, key := range keys {
		if strings.HasPrefix(key, "^") { // settings of the system
			continue
		}
		for _, rule := range rulesAt(config, key) {
			same := func(have any) bool { return reflect.DeepEqual(have, rule) }
			if !slices.ContainsFunc(rules, same) {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// rulesAt returns the rules under a key of a system's configuration.
func rulesAt(config map[string]any, key string) []any {
	list, ok := config[key].([]any)
	if !ok && config[key] != nil {
		list = []any{config[key]}
	}
	return list
}

// Rules returns the rules of external_auth for the owner of a token (CkMinions.fill_auth_list).
func (a *Auth) Rules(t Token) []any {
	config, _ := a.o.Config[t.EAuth].(map[string]any)
	var keys []string
	for key := range config {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var rules []any
	named := false
	add := func(key string) { rules = append(rules, rulesAt(config, key)...) }
	for _, key := range keys {
		switch {
		case strings.HasPrefix(key, "^"): // settings of the system
		case key == "*" && !a.o.Permissive:
		case keyConcerns(key, t):
			named = named || !strings.HasSuffix(key, "%")
			add(key)
		}
	}
	if _, ok := config["*"]; ok && !a.o.Permissive && !named {
		add("*")
	}
	if x, ok := a.o.Systems[t.EAuth].(Expander); ok {
		expanded, err := x.Expand(context.Background(), rules)
		if err == nil {
			return expanded
		}
		a.o.Log.Error("Rules cannot be expanded; they allow nothing on the minions "+
			"that they name so",
			"eauth", t.EAuth, "err", err)
	}
	return rules
}

// keyConcerns reports whether a key of external_auth is for the owner of a token: "group%", or a name or a
// pattern of names, or the id of a user that the kernel identified.
func keyConcerns(key string, t Token) bool {
	if group, ok := strings.CutSuffix(key, "%"); ok {
		return slices.Contains(t.Groups, group)
	}
	if t.UID != "" && peercred.Digits(key) {
		return key == t.UID
	}
	return MatchName(key, t.Name)
}

// MatchName reports whether a pattern matches a name: exactly, as a glob, or as a regular expression. It is
// stricter than [pyre.Expr], which is exactly Salt's expr_match: every alternative of "a|b" must match the
// whole name.
func MatchName(pattern, name string) bool {
	return pattern == name || fnmatch.Match(pattern, name) || matchesWhole(pattern, name)
}

// matchesWhole reports whether one of Python's regular expressions matches the whole text. A pattern that is
// not valid, or that takes too long, matches nothing.
func matchesWhole(pattern, text string) bool {
	re, err := pyre.Compile(pattern, 0)
	if err != nil {
		return false
	}
	ok, err := re.FullMatch(text)
	return err == nil && ok
}

// MayPublish reports whether rules allow every one of the functions, with its arguments, on every minion of the target.
func (a *Auth) MayPublish(rules []any, funs []string, args [][]any, tgtType string, tgt any) bool {
	if len(funs) == 0 {
		return false
	}
	for i, fun := range funs {
		var arg []any
		if i < len(args) {
			arg = args[i]
		}
		if fun == "saltutil.find_job" && len(rules) > 0 {
			continue // needed to wait for any job
		}
		if fun == "" || !a.Allows(rules, fun, arg, tgtType, tgt) {
			return false
		}
	}
	return true
}

// Allows reports whether rules allow one function, with its arguments as published, on every minion of the
// target. Conditions see the arguments as a minion does: texts like name=value and every map of keyword
// arguments count as keyword arguments at any position, so they cannot shift positional ones away from their
// conditions.
func (a *Auth) Allows(rules []any, fun string, args []any, tgtType string, tgt any) bool {
	args, _ = payload.Plain(args).([]any) // conditions are compared with the values' text
	// guard: arguments-of-rules TestMayPublish,TestRulesSeeWhatMinionsGet instead: pos, kw := protocol.ParseArgs(nil, yaml.ParseValue); pos = args
	pos, kw := protocol.ParseArgs(args, yaml.ParseValue)
	for _, rule := range rules {
		switch r := rule.(type) {
		case string:
			if !strings.HasPrefix(r, "@") && matchesWhole(r, fun) {
				return true
			}
		case map[string]any:
			if len(r) != 1 {
				continue
			}
			for minions, funs := range r {
				if !strings.HasPrefix(minions, "@") && a.within(minions, tgtType, tgt) &&
					allowed(funs, fun, pos, kw) {
					return true
				}
			}
		}
	}
	return false
}

// Everywhere returns the rules about functions that apply to all minions.
func Everywhere(rules []any) []any {
	return slices.DeleteFunc(slices.Clone(rules), func(r any) bool {
		s, ok := r.(string)
		return !ok || strings.HasPrefix(s, "@")
	})
}

// within reports whether a rule's compound expression matches all minions of a target.
func (a *Auth) within(rule, tgtType string, tgt any) bool {
	if a.o.Match == nil {
		return false
	}
	meant, err := a.o.Match(tgtType, tgt)
	if err != nil {
		return false
	}
	list, err := a.o.Match("compound", rule)
	if err != nil {
		return false
	}
	allowed := make(map[string]struct{}, len(list)) // both lists may have ten thousand ids
	for _, id := range list {
		allowed[id] = struct{}{}
	}
	return !slices.ContainsFunc(meant, func(id string) bool { _, ok := allowed[id]; return !ok })
}

// allowed is Salt's check of a function and its arguments against a rule's conditions.
func allowed(conds any, fun string, args []any, kwargs map[string]any) bool {
	for _, c := range asList(conds) {
		switch c := c.(type) {
		case string:
			if matchesWhole(c, fun) {
				return true
			}
		case map[string]any:
			if len(c) != 1 {
				continue
			}
			for name, want := range c {
				if matchesWhole(name, fun) && argsAllowed(want, args, kwargs) {
					return true
				}
			}
		}
	}
	return false
}

func argsAllowed(conds any, args []any, kwargs map[string]any) bool {
next:
	for _, c := range asList(conds) {
		m, ok := c.(map[string]any)
		if !ok {
			continue
		}
		for i, want := range asList(m["args"]) {
			if i >= len(args) ||
				want != nil && !matchesWhole(pytext.Str(want), pytext.Str(args[i])) {
				continue next
			}
		}
		kw, _ := m["kwargs"].(map[string]any)
		for name, want := range kw {
			v, ok := kwargs[name]
			if !ok || want != nil && !matchesWhole(pytext.Str(want), pytext.Str(v)) {
				continue next
			}
		}
		return true
	}
	return false
}

func asList(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// MayRun reports whether rules allow a runner or wheel function; kind is "runner" or "wheel" (CkMinions.spec_check).
func (a *Auth) MayRun(rules []any, kind, fun string, args []any, kwargs map[string]any) bool {
	mod, name, ok := strings.Cut(fun, ".")
	if !ok || strings.Contains(name, ".") {
		return false
	}
	args, _ = payload.Plain(args).([]any)
	kwargs = payload.PlainMap(kwargs)
	everything := func(s string) bool { return s == kind || s == kind+"s" }
	for _, rule := range rules {
		switch r := rule.(type) {
		case string:
			if at, ok := strings.CutPrefix(r, "@"); ok && (at == mod || everything(at)) {
				return true
			}
		case map[string]any:
			if len(r) != 1 {
				continue
			}
			for key, funs := range r {
				at, ok := strings.CutPrefix(key, "@")
				if ok && (at == mod && allowed(funs, name, args, kwargs) ||
					everything(at) && allowed(funs, fun, args, kwargs)) {
					return true
				}
			}
		}
	}
	return false
}
