// Package x509_v2 is Salt's state module "x509" as it is from Salt 3006 on with the feature x509_v2, and by default from 3008:
// certificates, requests, revocation lists and keys in files. Salt's source: salt/states/x509_v2.py.
package x509_v2

import (
	"context"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	x509mod "github.com/brine-salt/brine/modules/x509_v2"
	"github.com/brine-salt/brine/states"
)

// Compatibility.
//
// x509.certificate_managed differs: the digests of SHA-3 are not supported.
// x509.crl_managed differs: extensions are in the order of their names, not in that of the SLS.
// x509.private_key_managed differs: there are no keys of the kind ed448.

// job is one run of a state that keeps something in a file.
type job struct {
	*states.Call
	ctx context.Context
	ret *states.Result
	// what is kept in the file, as comments call it.
	what string
	// file are the arguments for file.managed, args the other keyword arguments, names theirs in the order of the SLS.
	file, args map[string]any
	names      []any
	// tried is the result of file.managed for the file alone, in test mode.
	tried *states.Result
	// real is the file behind a link.
	real string
	// replace means that the existing file is replaced, whatever it contains.
	replace bool
	changes map[string]any
	// current means that an existing object was read, again that the file is created once more.
	current, again bool
}

// isFileArg reports whether a keyword argument is for file.managed.
func isFileArg(name string) bool {
	switch name {
	case "user", "group", "mode", "attrs", "makedirs", "dir_mode", "backup", "create", "follow_symlinks", "check_cmd", "tmp_dir", "tmp_ext",
		"selinux", "encoding", "encoding_errors", "win_owner", "win_perms", "win_deny_perms", "win_inheritance", "win_perms_reset":
		return true
	}
	return false
}

func newJob(ctx context.Context, c *states.Call, what string) *job {
	j := &job{Call: c, ctx: ctx, ret: c.Result(), what: what, file: map[string]any{"show_changes": false}, args: map[string]any{}, changes: map[string]any{}}
	j.ret.Result, j.ret.Comment = states.True, "The "+what+" is in the correct state"
	for _, name := range c.KeywordNames {
		switch v := c.Keywords[name]; {
		case isFileArg(name):
			j.file[name] = v
		default:
			j.args[name] = v
			j.names = append(j.names, name)
		}
	}
	return j
}

// without takes keyword arguments out.
func (j *job) without(names ...string) {
	for _, name := range names {
		delete(j.args, name)
		j.names = slices.DeleteFunc(j.names, func(x any) bool { return x == name })
	}
}

// unknown refuses unknown keyword arguments.
func (j *job) unknown() error {
	if len(j.names) == 0 {
		return nil
	}
	return modules.Usagef("Unrecognized keyword arguments: %s", pytext.Repr(j.names))
}

// digest returns the argument digest, or algorithm, its former name.
func (j *job) digest() any {
	v, old := j.args["algorithm"]
	if !old {
		v = j.Value("digest")
	}
	j.without("algorithm")
	pki.LongNames(j.args)
	return v
}

// managed runs file.managed on the state's file.
func (j *job) managed(test bool, more map[string]any) *states.Result {
	kwargs := map[string]any{"name": j.Value("name")}
	maps.Copy(kwargs, j.file)
	maps.Copy(kwargs, more)
	begin := j.Now()
	got, err := j.InTest(test || j.Test()).State(j.ctx, "file.managed", kwargs)
	if err != nil {
		text := states.ErrorClass(err)
		if s := states.ErrorText(err); s != "" {
			text += ": " + s
		}
		got = &states.Result{Name: j.Name(), Changes: map[string]any{}, Comment: "An exception occurred in this state: Traceback (most recent call last):\n" + text + "\n"}
	}
	if got.Extra == nil {
		got.Extra = map[string]any{}
	}
	got.Extra["start_time"], got.Extra["duration"] = begin.Local().Format("15:04:05.000000"), float64(j.Now().Sub(begin).Microseconds())/1000
	return got
}

// report adds a run of file.managed to the answer.
func (j *job) report(got *states.Result) {
	low := states.NewLow(map[string]any{"name": j.Name(), "state": "file", "__id__": j.Low.ID(), "fun": "managed"})
	j.ret.SubStates = append(j.ret.SubStates, states.SubState{Low: low, Result: *got})
}

// begin checks the file. over means that the result is complete.
func (j *job) begin() (over bool, err error) {
	j.tried = j.managed(true, map[string]any{"replace": false})
	switch {
	case j.tried.Result == states.False:
		j.ret.Result, j.ret.Comment = states.False, "Problem while testing file.managed changes, see its output"
		fallthrough
	case notForCreation(j.tried.Comment):
		j.report(j.tried)
		return true, nil
	}
	j.real = j.Name()
	link, err := j.Exec(j.ctx, "file.is_link", j.Name())
	if err != nil || !pytext.Truth(link) {
		return false, err
	}
	if follow, given := j.file["follow_symlinks"]; !given || pytext.Truth(follow) {
		j.real, err = j.behind()
		return false, err
	}
	if !j.Test() {
		_, err = j.Exec(j.ctx, "file.remove", j.Name())
	}
	j.replace = true
	return false, err
}

// exists reports whether there is a file.
func (j *job) exists() (bool, error) {
	v, err := j.Exec(j.ctx, "file.file_exists", j.real)
	return pytext.Truth(v), err
}

// compare collects the changes. look compares the content of the file with the wanted one.
func (j *job) compare(look func() error) error {
	there, err := j.exists()
	if err != nil {
		return err
	}
	if there {
		err = look()
	} else {
		j.changes["created"] = j.Value("name")
	}
	if j.replace {
		j.changes["replaced"] = j.Value("name")
	}
	j.again = j.current
	return err
}

// only reports whether there are no other changes than the named ones.
func (j *job) only(names ...string) bool {
	for name := range j.changes {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// finish writes what build returns. text means that it is text.
func (j *job) finish(text bool, build func() (any, error)) error {
	changed := len(j.changes) > 0
	if !changed && j.tried.Result == states.True && !j.tried.Changed() {
		j.report(j.tried)
		return nil
	}
	j.ret.Changes = j.changes
	verb := "created"
	if j.again && changed {
		verb = "recreated"
	}
	if j.Test() {
		if changed {
			j.ret.Result, j.ret.Comment = states.None, "The "+j.what+" would have been "+verb
		}
		j.report(j.tried)
		return nil
	}
	if !changed {
		j.write(map[string]any{"replace": false})
		return nil
	}
	made, err := build()
	if err != nil {
		return err
	}
	j.ret.Comment = "The " + j.what + " has been " + verb
	if text {
		j.write(map[string]any{"replace": true, "contents": made})
		return nil
	}
	// The state file.managed has no way to be given bytes.
	if !j.write(map[string]any{"replace": false}) {
		return nil
	}
	return j.put(pytext.Str(made))
}

// write runs file.managed for real.
func (j *job) write(more map[string]any) bool {
	got := j.managed(false, more)
	j.report(got)
	if got.Result != states.False {
		return true
	}
	verb := "create"
	if j.current {
		verb = "update"
	}
	j.ret.Result, j.ret.Comment, j.ret.Changes = states.False, "Could not "+verb+" file, see file.managed output", map[string]any{}
	return false
}

// answer returns the state's result. Errors that Salt's functions expect become comments.
func (j *job) answer(err error) (*states.Result, error) {
	if err == nil {
		return j.ret, nil
	}
	switch states.ErrorClass(err) {
	case "salt.exceptions.CommandExecutionError", "salt.exceptions.SaltInvocationError":
		j.ret.Changes = map[string]any{}
		return j.ret.As(states.False, states.ErrorText(err))
	}
	return nil, err
}

func pemManaged(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := newJob(ctx, c, "")
	if err := j.unknown(); err != nil {
		return nil, err
	}
	text, err := c.ExecKw(ctx, "x509.get_pem_entry", nil, map[string]any{"text": c.Value("text")})
	if err != nil {
		return j.answer(err)
	}
	return j.managed(false, map[string]any{"contents": text}), nil
}

func csrManaged(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := newJob(ctx, c, "certificate signing request")
	digest := j.digest()
	err := j.csr(digest)
	return j.answer(err)
}

func (j *job) csr(digest any) error {
	if over, err := j.begin(); over || err != nil {
		return err
	}
	var raw []byte
	encoding := j.Value("encoding")
	err := j.compare(func() error {
		b, err := x509mod.Source(j.Call.Call, j.real)
		if err != nil {
			return err
		}
		csr, err := pki.CSR(b)
		if err != nil {
			j.replace = true
			return nil
		}
		if csr.Version != 0 {
			j.changes["invalid_version"], j.replace = true, true
			return nil
		}
		j.current, raw = true, csr.Raw
		if err := j.compareDigest(csr.Raw, digest, digest); err != nil {
			return err
		}
		if encoding != encodingOf(b) {
			j.changes["encoding"] = encoding
		}
		args := maps.Clone(j.args)
		args["subject"] = j.Value("subject")
		key, who, list, err := x509mod.DraftRequest(j.Call.Call, args)
		if err != nil {
			return err
		}
		if !pki.SamePublic(csr.PublicKey, key.Public()) {
			j.changes["private_key"] = true
		}
		j.compareName("subject_name", who, csr.RawSubject)
		j.compareExtensions(list, csr.Extensions)
		return nil
	})
	if err != nil {
		return err
	}
	return j.finish(encoding != "der", func() (any, error) {
		if j.only("encoding") {
			return j.ExecKw(j.ctx, "x509.encode_csr", []any{raw}, map[string]any{"encoding": encoding})
		}
		kw := maps.Clone(j.args)
		kw["digest"] = digest
		j.take(kw, "private_key_passphrase", "encoding", "subject")
		return j.ExecKw(j.ctx, "x509.create_csr", []any{j.Value("private_key")}, kw)
	})
}

// take puts arguments of the state into those of a function.
func (j *job) take(kw map[string]any, names ...string) {
	for _, name := range names {
		kw[name] = j.Value(name)
	}
}
