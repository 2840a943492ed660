package git

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// update updates an existing checkout.
type update struct {
	*latest
	branches, tags        any
	localRev, localBranch any
	baseRev, baseBranch   any // what the update starts from
	remotes               map[string]any
	match                 bool // the local revision is the wanted one
	changed               bool // there are local changes
	hasRev                bool // the wanted revision is there already
	forward               any  // whether this is a fast-forward, nil if not known
	trackingBranch        any  // the tracking branch that is set: nil, false, or a name
	newRev                any
}

func (u *update) work(ctx context.Context) error {
	steps := []func(context.Context) error{u.look, u.compare, u.decide, u.track}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	var err error
	switch {
	case u.remoteRev != nil:
		err = u.bring(ctx)
	case u.bare:
		err = u.bringBare(ctx)
	}
	if err == nil {
		u.newRev, err = u.newRevision(ctx)
	}
	return err
}

// look examines the checkout.
func (u *update) look(ctx context.Context) (err error) {
	if u.branches, err = u.run(ctx, "list_branches", nil, u.target); err != nil {
		return err
	}
	if u.tags, err = u.run(ctx, "list_tags", nil, u.target); err != nil {
		return err
	}
	if u.localRev, u.localBranch, err = u.position(ctx); err != nil {
		return err
	}
	if !u.bare && u.remoteRev == nil && u.localRev != nil {
		return u.failAlone("Remote repository is empty, cannot update from a non-empty to an empty repository")
	}
	u.baseRev, u.baseBranch = u.localRev, u.localBranch
	if u.branchChange(u.localBranch) {
		if !has(u.branches, u.branch) {
			u.baseRev = u.remoteRev
		} else {
			u.baseBranch = u.branch
			u.baseRev, err = u.run(ctx, "rev_parse", quiet(), u.target, pytext.Str(u.branch)+"^{commit}")
			if failed(err) {
				return u.fail("Unable to get position of local branch '" + pytext.Str(u.branch) + "': " + strip(err))
			}
			if err != nil {
				return err
			}
		}
	}
	v, err := u.run(ctx, "remotes", map[string]any{"redact_auth": false}, u.target)
	if err != nil {
		return err
	}
	u.remotes, _ = v.(map[string]any)
	u.match = equal(u.localRev, u.remoteRev, u.kind)
	if !u.bare {
		diff, err := u.run(ctx, "diff", nil, u.target, "HEAD")
		if err != nil && !failed(err) {
			return err
		}
		u.changed = err == nil && pytext.Truth(diff)
	}
	if !u.changed || !u.match {
		return nil
	}
	if u.forceReset != true {
		return u.upToDate(u.comments, true)
	}
	if u.Test() {
		u.ret.Changes["forced update"] = true
		return u.neutral(u.target + " is up-to-date, but with uncommitted changes. Since 'force_reset' is set to True, these local changes would be reset. " +
			"To only reset when there are changes in the remote repository, set 'force_reset' to 'remote-changes'.")
	}
	return nil
}

// parse returns the commit of a revision, or nil if it does not exist.
func (u *update) parse(ctx context.Context, rev any) (any, error) {
	v, err := u.run(ctx, "rev_parse", quiet(), u.target, rev)
	if failed(err) {
		return nil, nil
	}
	return v, err
}

// compare determines whether the wanted revision is checked out already.
func (u *update) compare(ctx context.Context) error {
	if base, ok := u.baseRev.(string); ok && u.kind == "sha1" && strings.HasPrefix(base, pytext.Str(u.remoteRev)) {
		u.hasRev = true
		return nil
	}
	if u.remoteRev == nil {
		return nil
	}
	there, err := u.parse(ctx, pytext.Str(u.remoteRev)+"^{commit}")
	if err != nil || there == nil {
		return err
	}
	switch u.kind {
	case "branch":
		if _, ok := u.remotes[u.remote]; !ok {
			return nil
		}
		have, err := u.parse(ctx, u.upstream)
		u.hasRev = have == u.remoteRev
		return err
	case "tag":
		if !has(u.tags, u.rev) {
			return nil
		}
		have, err := u.parse(ctx, u.rev+"^{commit}")
		if err != nil {
			return err
		}
		if u.hasRev = have == u.remoteRev; !u.hasRev && !pytext.Truth(u.forceReset) {
			return u.failAlone("'" + u.rev + "' is a tag, but the remote SHA1 for this tag (" + short(u.remoteRev) + ") doesn't match the local SHA1 (" + short(have) +
				"). Set 'force_reset' to True to force this update.")
		}
	case "sha1":
		u.hasRev = true
	}
	return nil
}

// ancestor reports whether the wanted revision comes after the one to start from.
func (u *update) ancestor(ctx context.Context, kw map[string]any) (err error) {
	if u.baseRev == nil {
		u.forward = true
		return nil
	}
	kw["refs"], kw["is_ancestor"] = []any{u.baseRev, u.remoteRev}, true
	u.forward, err = u.run(ctx, "merge_base", kw, u.target)
	return err
}

// stays reports whether HEAD must not move although it is at another revision.
func (u *update) stays() bool {
	return !u.match && !u.Bool("update_head") && (u.branch == nil || u.branch == u.localBranch)
}

// loc returns the wanted revision in the form that begins a comment.
func (u *update) loc() string {
	if u.rev == "HEAD" {
		return "Remote head" + strings.ToLower(strings.TrimPrefix(u.remoteLoc, "remote HEAD"))
	}
	return u.remoteLoc
}

// left settles the state with HEAD where it was.
func (u *update) left() error {
	u.ret.Comment = u.loc() + " is already present and local HEAD (" + short(u.localRev) + ") does not match, but update_head=False. HEAD has not been updated locally."
	return errSettled
}

// decide finds out what kind of update it is, and whether it is allowed.
func (u *update) decide(ctx context.Context) error {
	if u.changed && u.forceReset != "remote-changes" {
		u.forward = false
	}
	if u.hasRev {
		if u.stays() {
			return u.left()
		}
		if u.forward != false {
			if err := u.ancestor(ctx, quiet()); err != nil {
				return err
			}
		}
	}
	if u.forward == false && u.forceReset == false {
		return u.notForward()
	}
	return nil
}

// action returns the words for the way in which the checkout is updated.
func (u *update) action() string {
	switch u.forward {
	case false:
		return "hard-reset"
	case true:
		return "fast-forwarded"
	}
	return "updated"
}

// notForward settles the state as failed, with advice.
func (u *update) notForward() error {
	hint := ""
	local := pytext.Str(u.localBranch)
	if u.branch == nil {
		def := pytext.Str(u.defaultBranch)
		switch {
		case u.rev != "HEAD":
			if local != u.rev {
				hint = " The desired rev (" + u.rev + ") differs from the name of the local branch (" + local + "), if the desired rev is a branch name then a forced " +
					"update could possibly be avoided by setting the 'branch' argument to '" + u.rev + "' instead."
			}
		case u.defaultBranch != nil && u.localBranch != u.defaultBranch:
			hint = " The default remote branch (" + def + ") differs from the local branch (" + local + "). This could be caused by changing the default remote branch, " +
				"or if the local branch was manually changed. Rather than forcing an update, it may be advisable to set the 'branch' argument to '" + def +
				"' instead. To ensure that this state follows the '" + def + "' branch instead of the remote HEAD, set the 'rev' argument to '" + def + "'."
		}
	}
	pre, post := short(u.baseRev), short(u.remoteRev)
	msg := "Repository would be updated "
	if u.changed && pre != post {
		msg += "from " + pre + " to " + post
	} else {
		msg += "to " + post
	}
	if u.branchChange(u.localBranch) {
		msg += " (after checking out local branch '" + pytext.Str(u.branch) + "')"
	}
	if u.changed {
		msg += ", but there are uncommitted changes. Set 'force_reset' to True (or 'remote-changes') to force this update and discard these changes."
	} else {
		msg += ", but this is not a fast-forward merge. Set 'force_reset' to True to force this update."
	}
	return u.fail(msg + hint)
}

// track determines the tracking branch and updates the remote's URL.
func (u *update) track(ctx context.Context) (err error) {
	if u.baseBranch != nil {
		if u.trackingBranch, err = u.upstreamOf(ctx, u.baseBranch); err != nil {
			return err
		}
	}
	var url any
	if info, ok := u.remotes[u.remote].(map[string]any); ok {
		url = info["fetch"]
	}
	if u.remoteRev == nil || url == u.fetchURL {
		return nil
	}
	old, isText := url.(string)
	if u.Test() {
		if !isText {
			return &modules.TypeError{Msg: "expected string or bytes-like object, got 'NoneType'"}
		}
		return u.announceRemote(old)
	}
	_, err = u.run(ctx, "remote_set", map[string]any{"url": u.Value("name"), "remote": u.remote, "https_user": u.text("https_user"),
		"https_pass": u.text("https_pass")}, u.target)
	if err != nil {
		return err
	}
	if !isText {
		u.say("Remote '" + u.remote + "' set to " + modules.RedactAuth(u.fetchURL))
		u.ret.Changes["new"] = u.Name() + " => " + u.remote
	} else {
		u.say("Remote '" + u.remote + "' changed from " + modules.RedactAuth(old) + " to " + modules.RedactAuth(u.fetchURL))
	}
	return nil
}

// announceRemote ends the state in test mode with a comment about the new URL of the remote.
func (u *update) announceRemote(old string) error {
	actions := []string{"Remote '" + u.remote + "' would be changed from " + modules.RedactAuth(old) + " to " + modules.RedactAuth(u.fetchURL)}
	if !u.hasRev {
		actions = append(actions, "Remote would be fetched")
	}
	if !u.match && u.Bool("update_head") {
		u.ret.Changes["revision"] = map[string]any{"old": u.localRev, "new": u.remoteRev}
		if u.forward == false {
			u.ret.Changes["forced update"] = true
		}
		actions = append(actions, "Repository would be "+u.action()+" to "+short(u.remoteRev))
	}
	switch {
	case len(u.ret.Changes) > 0:
		return u.neutral(format(actions))
	case u.stays() || !u.match && !u.Bool("update_head"):
		u.ret.Comment = format(actions)
		return errSettled
	}
	return u.upToDate(actions, false)
}

// announce ends the state in test mode with a comment about what would be done.
func (u *update) announce() error {
	var actions []string
	say := func(s string) { actions = append(actions, s) }
	head := u.Bool("update_head")
	if !u.hasRev {
		say("Remote '" + u.remote + "' would be fetched")
	}
	if !u.match && (head || u.branch != nil && u.branch != u.localBranch) {
		u.ret.Changes["revision"] = map[string]any{"old": u.localRev, "new": u.remoteRev}
	}
	from, to := short(u.localRev), short(u.remoteRev)
	switch {
	case u.branchChange(u.localBranch) && !has(u.branches, u.branch):
		say("New branch '" + pytext.Str(u.branch) + "' would be checked out, with " + u.remoteLoc + " as a starting point")
		if pytext.Truth(u.upstream) {
			say("Tracking branch would be set to " + pytext.Str(u.upstream))
		}
	case u.branchChange(u.localBranch):
		say("Branch '" + pytext.Str(u.branch) + "' would be checked out and " + u.action() + " to " + to)
	case u.match:
	case !head:
		say("Local HEAD (" + from + ") does not match " + u.remoteLoc + " but update_head=False, HEAD would not be updated locally")
	case u.forward == true:
		say("Repository would be fast-forwarded from " + from + " to " + to)
	case pytext.Truth(u.forceReset) && u.hasRev:
		say("Repository would be hard-reset from " + from + " to " + to)
	default:
		say("Repository would be updated from " + from + " to " + to)
	}
	has, want := pytext.Truth(u.trackingBranch), pytext.Truth(u.upstream)
	switch {
	case !has && want:
		say("Tracking branch would be set to " + pytext.Str(u.upstream))
	case has && u.upstream == false:
		say("Tracking branch would be unset")
	case want && u.trackingBranch != u.upstream:
		say("Tracking branch would be updated to " + pytext.Str(u.upstream))
	}
	switch {
	case len(u.ret.Changes) > 0:
		return u.neutral(format(actions))
	case !u.match && !head && len(actions) > 0:
		u.ret.Comment = format(actions)
		return errSettled
	}
	return u.upToDate(actions, false)
}

// syncTags compares the tags and removes those that the remote repository has no more.
func (u *update) syncTags(ctx context.Context) error {
	v, err := u.run(ctx, "ls_remote", map[string]any{"cwd": u.target, "remote": u.remote, "opts": "--tags", "identity": u.keys, "saltenv": u.Saltenv(),
		"ignore_retcode": true})
	if err != nil {
		return err
	}
	refs, _ := v.(map[string]any)
	remote := map[string]bool{}
	var fresh, deleted []any
	for ref := range refs {
		if name := strings.ReplaceAll(ref, "refs/tags/", ""); !strings.Contains(ref, "^{}") {
			remote[name] = true
			if !has(u.tags, name) {
				fresh = append(fresh, name)
			}
		}
	}
	local, _ := u.tags.([]any)
	var gone []string
	for _, t := range local {
		if name := pytext.Str(t); !remote[name] && !slices.Contains(gone, name) {
			gone = append(gone, name)
		}
	}
	if fresh == nil && gone == nil {
		return nil
	}
	u.hasRev = false
	if fresh != nil {
		sorting.Stable(fresh, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		u.ret.Changes["new_tags"] = fresh
	}
	if !u.Bool("sync_tags") {
		return nil
	}
	var names []string
	for _, name := range gone {
		_, err := u.run(ctx, "tag", map[string]any{"opts": "-d"}, u.target, name)
		switch {
		case failed(err):
			u.ret.Warn("Failed to remove local tag '" + name + "':\n\n" + err.Error() + "\n\n")
			continue
		case err != nil:
			return err
		}
		deleted, names = append(deleted, name), append(names, name)
		u.ret.Changes["deleted_tags"] = deleted
	}
	if names != nil {
		u.say("The following tags were removed from the local checkout: " + strings.Join(names, ", "))
	}
	return nil
}

// fetch fetches, and reports whether that changed anything.
func (l *latest) fetch(ctx context.Context) (bool, error) {
	v, err := l.run(ctx, "fetch", map[string]any{"remote": l.remote, "force": l.Value("force_fetch"), "refspecs": l.refspecs, "identity": l.keys,
		"saltenv": l.Saltenv()}, l.target)
	if failed(err) {
		return false, l.fail("Fetch failed. Set 'force_fetch' to True to force the fetch if the failure was due to not being able to fast-forward. Output of the " +
			"fetch command follows:\n\n" + strip(err))
	}
	return pytext.Truth(v), err
}

// bringBare updates a repository without a checkout.
func (u *update) bringBare(ctx context.Context) error {
	if u.Test() {
		msg := "Bare repository at " + u.target + " would be fetched"
		if len(u.ret.Changes) > 0 {
			return u.neutral(msg)
		}
		var letters []string // Salt joins the letters of the text as if they were comments
		for _, r := range msg {
			letters = append(letters, string(r))
		}
		return u.upToDate(letters, false)
	}
	changed, err := u.fetch(ctx)
	if err != nil {
		return err
	}
	msg := "Bare repository at " + u.target + " was fetched"
	if changed {
		msg += ", resulting in updated refs"
	}
	u.say(msg)
	return nil
}

// bring fetches what is new and moves the checkout there.
func (u *update) bring(ctx context.Context) error {
	if u.Test() {
		return u.announce()
	}
	opts, action := u.tracking(u.trackingBranch, u.branches)
	if opts != nil && u.localBranch == nil {
		return u.fail("Cannot set/unset upstream tracking branch, local HEAD refers to nonexistent branch. This may have been caused by cloning a remote " +
			"repository for which the default branch was renamed or deleted. If you are unable to fix the remote repository, you can work around this by " +
			"setting the 'branch' argument (which will ensure that the named branch is created if it does not already exist).")
	}
	if err := u.syncTags(ctx); err != nil {
		return err
	}
	if !u.hasRev {
		if err := u.get(ctx); err != nil {
			return err
		}
	}
	if u.branchChange(u.localBranch) {
		if err := u.checkout(ctx); err != nil {
			return err
		}
	}
	if err := u.clean(ctx); err != nil {
		return err
	}
	if opts != nil {
		if _, err := u.run(ctx, "branch", map[string]any{"opts": opts}, u.target); err != nil {
			return err
		}
		u.say(action)
	}
	if u.forward == true && !equal(u.baseRev, u.remoteRev, u.kind) {
		if err := u.advance(ctx); err != nil {
			return err
		}
	}
	if !u.Bool("submodules") {
		return nil
	}
	err := u.submodules(ctx, map[string]any{"identity": u.keys, "saltenv": u.Saltenv()})
	if failed(err) {
		return u.fail("Failed to update submodules: " + strip(err))
	}
	return err
}

// get fetches the wanted revision and looks again at what kind of update it is.
func (u *update) get(ctx context.Context) error {
	changed, err := u.fetch(ctx)
	if err != nil {
		return err
	}
	if changed {
		u.say(u.Name() + " was fetched, resulting in updated refs")
	}
	if _, err = u.run(ctx, "rev_parse", quiet(), u.target, pytext.Str(u.remoteRev)+"^{commit}"); failed(err) {
		return u.failAlone("Fetch did not successfully retrieve rev '" + u.rev + "' from " + u.Name() + ": " + err.Error())
	}
	if err != nil {
		return err
	}
	if u.stays() {
		return u.left()
	}
	if err := u.ancestor(ctx, map[string]any{}); err != nil {
		return err
	}
	if u.forceReset == false && (u.forward == false || u.forward == true && u.changed) {
		return u.notForward()
	}
	return nil
}

// checkout changes the branch.
func (u *update) checkout(ctx context.Context) error {
	if u.changed && !u.Bool("force_checkout") {
		return u.failAlone("Local branch '" + pytext.Str(u.localBranch) + "' has uncommitted changes. Set 'force_checkout' to True to discard them and proceed.")
	}
	rev, opts := u.branch, []any{}
	comment := "'" + pytext.Str(u.branch) + "' was checked out"
	if !has(u.branches, u.branch) {
		rev, opts = u.start(), []any{"-b", u.branch}
		comment = "New branch '" + pytext.Str(u.branch) + "' was checked out, with " + u.remoteLoc + " as a starting point"
	}
	if _, err := u.run(ctx, "checkout", map[string]any{"force": u.Value("force_checkout"), "opts": opts}, u.target, rev); err != nil {
		return err
	}
	u.say(comment)
	return nil
}

// withLFS adds the keyword arguments for LFS to kw and returns it.
func (u *update) withLFS(kw map[string]any) map[string]any {
	for k, v := range u.lfs {
		kw[k] = v
	}
	return kw
}

// clean discards local changes, or resets the checkout if the update is not a fast-forward.
func (u *update) clean(ctx context.Context) error {
	switch {
	case u.forward == false:
		if _, err := u.run(ctx, "reset", u.withLFS(map[string]any{"opts": []any{"--hard", u.remoteRev}}), u.target); err != nil {
			return err
		}
		u.ret.Changes["forced update"] = true
		if u.changed {
			u.say("Uncommitted changes were discarded")
		}
		u.say("Repository was hard-reset to " + u.remoteLoc)
	case u.forward == true && u.changed && u.forceReset != false:
		if _, err := u.run(ctx, "discard_local_changes", nil, u.target); err != nil {
			return err
		}
		u.say("Uncommitted changes were discarded")
	}
	return nil
}

// advance fast-forwards.
func (u *update) advance(ctx context.Context) error {
	if !pytext.Truth(u.upstream) && u.rev != "HEAD" {
		if _, err := u.run(ctx, "reset", u.withLFS(map[string]any{"opts": []any{"--hard", u.rev}}), u.target); err != nil {
			return err
		}
		u.say("Repository was reset to " + u.rev + " (fast-forward)")
		return nil
	}
	head, err := u.run(ctx, "symbolic_ref", quiet("opts", []any{"--quiet"}), u.target, "HEAD")
	if err != nil {
		return err
	}
	if !pytext.Truth(head) {
		return u.fail("Unable to fast-forward, HEAD is detached")
	}
	if _, err := u.run(ctx, "merge", u.withLFS(map[string]any{"rev": u.remoteRev, "opts": []any{"--ff-only"}}), u.target); err != nil {
		return err
	}
	u.say("Repository was fast-forwarded to " + u.remoteLoc)
	return nil
}
