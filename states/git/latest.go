package git

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// latest is one run of git.latest.
type latest struct {
	repo
	rev        string
	branch     any // nil if none was given
	remote     string
	bare       bool
	keys       any
	lfs        map[string]any // keywords for commands that may need a key because of LFS
	fetchURL   string
	forceReset any

	refs          map[string]any // of the remote repository
	defaultBranch any
	remoteRev     any
	kind          string // "branch", "tag", "sha1" or ""
	upstream      any    // the tracking branch that is wanted; nil if any, false for none
	remoteLoc     string
	refspecs      []any
}

func runLatest(ctx context.Context, c *states.Call) (*states.Result, error) {
	l := &latest{repo: repo{Call: c, ret: c.Result(), target: c.Str("target")}, upstream: false}
	l.ret.Result = states.True
	err := l.prepare(ctx)
	if err == nil {
		err = l.work(ctx)
	}
	return l.settle(err)
}

// prepare checks the arguments and asks the remote repository.
func (l *latest) prepare(ctx context.Context) error {
	if msg := l.surplus(); msg != "" {
		return l.fail(msg)
	}
	for _, k := range [...]string{"remote", "target"} {
		if !l.Bool(k) {
			return l.fail("'" + k + "' argument is required")
		}
	}
	l.rev, l.remote, l.branch = l.Str("rev"), l.Str("remote"), l.text("branch")
	if !l.Bool("rev") {
		return l.fail("'" + pytext.Str(l.Value("rev")) + "' is not a valid value for the 'rev' argument")
	}
	l.forceReset = l.Value("force_reset")
	if l.forceReset != "remote-changes" && !pyobj.Equal(l.forceReset, true) && !pyobj.Equal(l.forceReset, false) {
		return l.fail("'force_reset' must be one of True, False, or 'remote-changes'")
	}
	if !filepath.IsAbs(l.target) {
		return l.fail("target '" + l.target + "' is not an absolute path")
	}
	var err error
	if l.keys, err = l.identity(ctx, "identity"); err != nil {
		return err
	}
	lfs, err := l.ExecKw(ctx, "git.config_get_regexp", []any{`filter\.lfs\.`}, quiet("global", true))
	if err != nil {
		return err
	}
	l.lfs = map[string]any{}
	if pytext.Truth(lfs) {
		l.lfs["identity"] = l.keys
	}
	if l.isFile(l.target) {
		return l.fail("Target '" + l.target + "' exists and is a regular file, cannot proceed")
	}
	if l.fetchURL, err = l.credentials(); err != nil {
		return err
	}
	l.bare = l.Bool("bare") || l.Bool("mirror")
	if l.rev != "HEAD" && l.bare {
		return l.fail("'rev' is not compatible with the 'mirror' and 'bare' arguments")
	}
	l.refspecs = []any{}
	if l.Bool("fetch_tags") {
		b, t := l.Str("refspec_branch"), l.Str("refspec_tag")
		l.refspecs = []any{"refs/heads/" + b + ":refs/remotes/" + l.remote + "/" + b, "+refs/tags/" + t + ":refs/tags/" + t}
	}
	v, err := l.run(ctx, "remote_refs", map[string]any{"heads": false, "tags": false, "identity": l.keys, "https_user": l.text("https_user"),
		"https_pass": l.text("https_pass"), "ignore_retcode": false, "saltenv": l.Saltenv()}, l.Value("name"))
	if failed(err) {
		return l.fail("Failed to check remote refs: " + strip(err))
	}
	if err != nil {
		return err
	}
	l.refs, _ = v.(map[string]any)
	return l.find()
}

// find finds the wanted revision in the remote repository.
func (l *latest) find() error {
	head, ok := l.refs["HEAD"]
	if ok {
		var names []string
		for ref, sha := range l.refs {
			if strings.HasPrefix(ref, "refs/heads/") && sha == head {
				names = append(names, strings.TrimPrefix(ref, "refs/heads/"))
			}
		}
		slices.Sort(names)
		if names != nil {
			l.defaultBranch = names[0]
		}
	}
	ref := func(name string) bool {
		sha, ok := l.refs[name]
		if ok {
			l.remoteRev = sha
		}
		return ok
	}
	switch {
	case l.bare:
	case l.rev == "HEAD":
		if ok {
			l.remoteRev, l.upstream, l.kind = head, nil, "sha1"
		}
	case ref("refs/heads/" + l.rev):
		l.upstream, l.kind = l.remote+"/"+l.rev, "branch"
	case ref("refs/tags/"+l.rev+"^{}") || ref("refs/tags/"+l.rev):
		l.kind = "tag"
	case isSHA(l.rev):
		l.rev = strings.ToLower(l.rev)
		l.remoteRev, l.kind = l.rev, "sha1"
	}
	switch {
	case l.remoteRev == nil:
		l.remoteLoc = "None"
	case l.kind == "sha1" && l.rev == "HEAD":
		l.remoteLoc = "remote HEAD (" + short(l.remoteRev) + ")"
	case l.kind == "sha1":
		l.remoteLoc = short(l.remoteRev)
	case l.kind == "branch":
		l.remoteLoc = pytext.Str(l.upstream) + " (" + short(l.remoteRev) + ")"
	default:
		l.remoteLoc = l.rev + " (" + short(l.remoteRev) + ")"
	}
	if l.Value("depth") != nil && l.kind != "branch" && l.kind != "tag" {
		return l.fail("When 'depth' is used, 'rev' must be set to the name of a branch or tag on the remote repository")
	}
	if l.remoteRev == nil && !l.bare && l.rev != "HEAD" {
		return l.fail("No revision matching '" + l.rev + "' exists in the remote repository")
	}
	return nil
}

// work updates an existing checkout, or creates one.
func (l *latest) work(ctx context.Context) error {
	inside := ".git"
	if l.bare {
		inside = "refs"
	}
	there, err := l.isCheckout(ctx, inside)
	if err != nil {
		return err
	}
	if !there {
		return l.clone(ctx)
	}
	u := &update{latest: l}
	err = u.work(ctx)
	switch {
	case err == nil:
	case err == errSettled:
		return err
	default:
		return l.fail(strip(err))
	}
	if !l.bare && !equal(u.newRev, l.remoteRev, l.kind) {
		return l.fail("Failed to update repository")
	}
	if u.localRev == u.newRev {
		return l.upToDate(l.comments, false)
	}
	l.ret.Comment = format(l.comments)
	l.ret.Changes["revision"] = map[string]any{"old": u.localRev, "new": u.newRev}
	return nil
}

// branchChange reports whether another branch must be checked out.
func (l *latest) branchChange(local any) bool { return l.branch != nil && l.branch != local }

// tracking returns how the tracking branch has to change: the options of git branch, or nil if it need not change,
// and a word for the change.
func (l *latest) tracking(upstream any, branches any) (opts []any, action string) {
	set := func() []any {
		if l.branch != nil && !has(branches, l.branch) {
			return nil
		}
		return []any{"--set-upstream-to", l.upstream}
	}
	switch {
	case !pytext.Truth(upstream) && pytext.Truth(l.upstream):
		return set(), "Tracking branch was set to " + pytext.Str(l.upstream)
	case pytext.Truth(upstream) && l.upstream == false:
		return []any{"--unset-upstream"}, "Tracking branch was unset"
	case pytext.Truth(l.upstream) && upstream != l.upstream:
		return set(), "Tracking branch was updated to " + pytext.Str(l.upstream)
	}
	return nil, ""
}

// upstreamOf returns the tracking branch of a local branch, or False if it has none.
func (l *latest) upstreamOf(ctx context.Context, branch any) (any, error) {
	s, ok := branch.(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "unsupported operand type(s) for +: 'NoneType' and 'str'"}
	}
	v, err := l.run(ctx, "rev_parse", quiet("opts", []any{"--abbrev-ref"}), l.target, s+"@{upstream}")
	if failed(err) {
		return false, nil
	}
	return v, err
}

// submodules updates the submodules.
func (r *repo) submodules(ctx context.Context, kw map[string]any) error {
	kw["opts"] = []any{"--init", "--recursive"}
	_, err := r.run(ctx, "submodule", kw, r.target, "update")
	return err
}

// clone makes the checkout.
func (l *latest) clone(ctx context.Context) error {
	what := l.Name() + " => " + l.target
	err := l.makeRoom(l.Bool("force_clone"), func() error {
		l.ret.Changes["forced clone"], l.ret.Changes["new"] = true, what
		return l.wouldClear()
	})
	if err != nil {
		return err
	}
	if l.Test() {
		l.ret.Changes["new"] = what
		return l.neutral("Repository " + l.Name() + " would be cloned to " + l.target)
	}
	if err = l.doClone(ctx, what); err != nil && err != errSettled {
		return l.fail(strip(err))
	}
	if err != nil {
		return err
	}
	rev, err := l.newRevision(ctx)
	if err != nil {
		return l.fail(strip(err))
	}
	l.ret.Comment = format(l.comments)
	if rev != nil {
		l.ret.Changes["revision"] = map[string]any{"old": nil, "new": rev}
	}
	return nil
}

func (l *latest) doClone(ctx context.Context, what string) error {
	opts, as := []any{}, ""
	switch {
	case l.Bool("mirror"):
		opts, as = append(opts, "--mirror"), " as mirror"
	case l.bare:
		opts, as = append(opts, "--bare"), " as bare repository"
	}
	if l.remote != "origin" {
		opts = append(opts, "--origin", l.remote)
	}
	if depth := l.Value("depth"); depth != nil {
		opts = append(opts, "--depth", pytext.Str(depth), "--branch", l.rev)
	}
	_, err := l.run(ctx, "clone", map[string]any{"opts": opts, "identity": l.keys, "https_user": l.text("https_user"), "https_pass": l.text("https_pass"),
		"saltenv": l.Saltenv()}, l.target, l.Value("name"))
	if failed(err) {
		return l.fail("Clone failed: " + strip(err))
	}
	if err != nil {
		return err
	}
	l.ret.Changes["new"] = what
	l.say(l.Name() + " cloned to " + l.target + as)
	if !l.bare && l.remoteRev != nil {
		if err := l.place(ctx); err != nil {
			return err
		}
	}
	if l.Bool("submodules") && l.remoteRev != nil {
		err := l.submodules(ctx, map[string]any{"identity": l.keys})
		if failed(err) {
			return l.fail("Failed to update submodules: " + strip(err))
		}
		return err
	}
	return nil
}

// start returns the revision at which a new branch starts.
func (l *latest) start() any {
	switch {
	case l.rev == "HEAD":
		return l.remoteRev
	case pytext.Truth(l.upstream):
		return l.upstream
	}
	return l.rev
}

// place brings a fresh clone to the wanted revision and branch.
func (l *latest) place(ctx context.Context) error {
	if l.kind == "tag" {
		tags, err := l.run(ctx, "list_tags", nil, l.target)
		if err != nil {
			return err
		}
		if !has(tags, l.rev) {
			return l.fail("Revision '" + l.rev + "' does not exist in clone")
		}
	}
	if l.branch != nil {
		branches, err := l.run(ctx, "list_branches", nil, l.target)
		if err != nil {
			return err
		}
		if !has(branches, l.branch) {
			if _, err := l.run(ctx, "checkout", map[string]any{"opts": []any{"-b", l.branch}}, l.target, l.start()); err != nil {
				return err
			}
			l.say("Branch '" + pytext.Str(l.branch) + "' checked out, with " + l.remoteLoc + " as a starting point")
		}
	}
	rev, branch, err := l.position(ctx)
	if err != nil {
		return err
	}
	if _, ok := l.refs["HEAD"]; branch == nil && !ok {
		return l.fail("Remote HEAD refers to a ref that does not exist. This can happen when the default branch on the remote repository is renamed or " +
			"deleted. If you are unable to fix the remote repository, you can work around this by setting the 'branch' argument (which will ensure that the " +
			"named branch is created if it does not already exist).")
	}
	if !equal(rev, l.remoteRev, l.kind) {
		if _, err := l.run(ctx, "reset", map[string]any{"opts": []any{"--hard", l.remoteRev}}, l.target); err != nil {
			return err
		}
		l.say("Repository was reset to " + l.remoteLoc)
	}
	upstream, err := l.upstreamOf(ctx, branch)
	if err != nil {
		return err
	}
	branches, err := l.run(ctx, "list_branches", nil, l.target)
	if err != nil {
		return err
	}
	if opts, action := l.tracking(upstream, branches); opts != nil {
		if _, err := l.run(ctx, "branch", map[string]any{"opts": opts}, l.target); err != nil {
			return err
		}
		l.say(action)
	}
	return nil
}
