package git

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/states"
)

// checkout is one run of git.detached.
type checkout struct {
	repo
	rev, remote string
	keys        any
	hash        bool // rev is a hash
	there       bool // the hash is there already
	local       any  // the revision that is checked out
}

func detached(ctx context.Context, c *states.Call) (*states.Result, error) {
	d := &checkout{repo: repo{Call: c, ret: c.Result(), target: c.Str("target")}}
	d.ret.Result = states.True
	return d.settle(d.work(ctx))
}

func (d *checkout) work(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	there, err := d.isCheckout(ctx, ".git")
	if err != nil {
		return err
	}
	if there {
		err = d.look(ctx)
	} else {
		err = d.clone(ctx)
	}
	if err != nil {
		return err
	}
	if !d.there && d.Value("fetch_remote") != false {
		if err := d.fetch(ctx); err != nil {
			return err
		}
	}
	commit, err := d.commit(ctx)
	if err != nil {
		return err
	}
	return d.place(ctx, commit)
}

// prepare checks the arguments.
func (d *checkout) prepare(ctx context.Context) (err error) {
	if msg := d.surplus(); msg != "" {
		return d.fail(msg)
	}
	d.rev, d.remote = d.Str("rev"), d.Str("remote")
	for _, k := range [...]string{"rev", "target"} {
		if !d.Bool(k) {
			return d.fail("'" + pytext.Str(d.Value("rev")) + "' is not a valid value for the '" + k + "' argument")
		}
	}
	if !filepath.IsAbs(d.target) {
		return d.fail("Target '" + d.target + "' is not an absolute path")
	}
	if d.keys, err = d.identity(ctx, "Identity"); err != nil {
		return err
	}
	if d.isFile(d.target) {
		return d.fail("Target '" + d.target + "' exists and is a regular file, cannot proceed")
	}
	if _, err := d.credentials(); err != nil {
		return err
	}
	if d.hash = isSHA(d.rev); d.hash {
		d.rev = strings.ToLower(d.rev)
	}
	return nil
}

// look examines the checkout, and sets the remote repository.
func (d *checkout) look(ctx context.Context) (err error) {
	if d.local, _, err = d.position(ctx); err != nil {
		return err
	}
	if d.hash {
		_, err = d.run(ctx, "describe", quiet(), d.target, d.rev)
		if d.there = err == nil; failed(err) {
			return nil
		}
		return err
	}
	v, err := d.run(ctx, "remotes", map[string]any{"redact_auth": false}, d.target)
	if err != nil {
		return err
	}
	remotes, _ := v.(map[string]any)
	info, _ := remotes[d.remote].(map[string]any)
	if url, _ := info["fetch"].(string); info != nil && strings.Contains(url, d.Name()) {
		return nil
	}
	if d.Test() {
		return d.neutral("Remote " + d.remote + " would be set to " + d.Name())
	}
	_, err = d.run(ctx, "remote_set", map[string]any{"url": d.Value("name"), "remote": d.remote, "https_user": d.text("https_user"),
		"https_pass": d.text("https_pass")}, d.target)
	if err == nil {
		d.say("Remote " + d.remote + " updated from '" + pytext.Str(info["fetch"]) + "' to '" + d.Name() + "'")
	}
	return err
}

func (d *checkout) clone(ctx context.Context) error {
	if err := d.makeRoom(d.Bool("force_clone"), d.wouldClear); err != nil {
		return err
	}
	if d.Test() {
		return d.neutral("Repository " + d.Name() + " would be cloned to " + d.target)
	}
	opts := []any{"--no-checkout"}
	if d.remote != "origin" {
		opts = append(opts, "--origin", d.remote)
	}
	_, err := d.run(ctx, "clone", map[string]any{"opts": opts, "identity": d.keys, "https_user": d.text("https_user"), "https_pass": d.text("https_pass"),
		"saltenv": d.Saltenv()}, d.target, d.Value("name"))
	if err != nil {
		return d.fail(strip(err))
	}
	d.say(d.Name() + " cloned to " + d.target)
	return nil
}

func (d *checkout) fetch(ctx context.Context) error {
	if d.Test() {
		return d.neutral("Repository remote " + d.remote + " would be fetched")
	}
	v, err := d.run(ctx, "fetch", map[string]any{"remote": d.remote, "force": true, "identity": d.keys, "saltenv": d.Saltenv(),
		"refspecs": []any{"refs/heads/*:refs/remotes/" + d.remote + "/*", "+refs/tags/*:refs/tags/*"}}, d.target)
	if failed(err) {
		return d.fail("Fetch failed:\n\n" + err.Error())
	}
	if pytext.Truth(v) {
		d.say("Remote " + d.remote + " was fetched, resulting in updated refs")
	}
	return err
}

// commit returns the revision to check out.
func (d *checkout) commit(ctx context.Context) (any, error) {
	if d.hash {
		v, err := d.run(ctx, "describe", nil, d.target, d.rev)
		if err != nil {
			return nil, err
		}
		if !pytext.Truth(v) {
			return nil, d.failAlone("Revision '" + d.rev + "' does not exist")
		}
		return d.rev, nil
	}
	v, err := d.run(ctx, "remote_refs", map[string]any{"identity": d.keys, "https_user": d.text("https_user"), "https_pass": d.text("https_pass"),
		"ignore_retcode": false}, d.target)
	if failed(err) {
		return nil, d.failAlone("Failed to list refs for " + d.remote + ": " + strip(err))
	}
	if err != nil {
		return nil, err
	}
	refs, _ := v.(map[string]any)
	for _, ref := range [...]string{"refs/remotes/" + d.remote + "/" + d.rev, "refs/tags/" + d.rev} {
		if sha, ok := refs[ref]; ok {
			return sha, nil
		}
	}
	return nil, d.failAlone("Revision '" + d.rev + "' does not exist")
}

// place checks the revision out.
func (d *checkout) place(ctx context.Context, commit any) error {
	if d.Bool("hard_reset") {
		if d.Test() {
			return d.neutral("Hard reset to HEAD would be performed on " + d.target)
		}
		if _, err := d.run(ctx, "reset", map[string]any{"opts": []any{"--hard", "HEAD"}}, d.target); err != nil {
			return err
		}
		d.say("Repository was reset to HEAD before checking out revision")
	}
	var now any
	if commit != d.local {
		if d.Test() {
			d.ret.Changes["HEAD"] = map[string]any{"old": d.local, "new": commit}
			return d.neutral("Commit ID " + pytext.Str(commit) + " would be checked out at " + d.target)
		}
		if _, err := d.run(ctx, "checkout", map[string]any{"force": d.Value("force_checkout")}, d.target, commit); err != nil {
			return err
		}
		d.say("Commit ID " + pytext.Str(commit) + " was checked out at " + d.target)
		var err error
		if now, err = d.newRevision(ctx); err != nil {
			return err
		}
	}
	if d.Bool("submodules") {
		if err := d.submodules(ctx, map[string]any{"identity": d.keys}); err != nil {
			return err
		}
		d.say("Submodules were updated")
	}
	if now != nil {
		d.ret.Changes["HEAD"] = map[string]any{"old": d.local, "new": now}
	} else {
		d.say("Already checked out at correct revision")
	}
	d.ret.Comment = format(d.comments)
	return nil
}
