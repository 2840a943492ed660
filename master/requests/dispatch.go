package requests

import (
	"context"

	"github.com/brine-salt/brine/protocol"
)

// answer handles one request of a minion. Only protocol.OpenRequest returns a Verified, so its checks cannot be
// bypassed. An error is logged and answered with "", as Salt answers an exception.
type answer func(a *Answers, ctx context.Context, v protocol.Verified) (any, error)

// find returns the handler of a function, or nil. The list is Salt's AESFuncs.expose_methods plus one of ours.
// It is a switch, so that nothing can be added at run time (CVE-2020-11651).
func find(cmd string) answer {
	switch cmd {
	case "_return":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Returns.Take(ctx, v)
		}
	case "_minion_event":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Events.Fire(ctx, v)
		}
	case "_file_hash":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Files.Hash(ctx, v)
		}
	case "_file_hash_and_stat":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Files.HashAndStat(ctx, v)
		}
	case "_file_find":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Files.Find(ctx, v)
		}
	case "_serve_file":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Files.Serve(ctx, v)
		}
	case "_file_list":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Files.List(ctx, v)
		}
	case "_file_list_emptydirs":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Files.ListEmptyDirs(ctx, v)
		}
	case "_dir_list":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Files.ListDirs(ctx, v)
		}
	case "_symlink_list":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Files.ListSymlinks(ctx, v)
		}
	case "_file_envs":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Files.Envs(ctx, v)
		}
	case "_file_recv":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Pushed.Receive(ctx, v)
		}
	case "_master_opts":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Config.Options(ctx, v)
		}
	case "_master_tops":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Config.TopFiles(ctx, v)
		}
	case "_mine":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Mine.Store(ctx, v)
		}
	case "_mine_get":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Mine.Get(ctx, v)
		}
	case "_mine_delete":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Mine.Delete(ctx, v)
		}
	case "_mine_flush":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Mine.Flush(ctx, v)
		}
	case "minion_pub":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Peers.Publish(ctx, v)
		}
	case "minion_publish":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Peers.PublishAndWait(ctx, v)
		}
	case "pub_ret":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Peers.Returns(ctx, v)
		}
	case "minion_runner":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Peers.Run(ctx, v)
		}
	case "revoke_auth":
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Revocation.Revoke(ctx, v)
		}
	case protocol.FetchCmd:
		return func(a *Answers, ctx context.Context, v protocol.Verified) (any, error) {
			return a.Jobs.Fetch(ctx, v)
		}
	case "_register_resources", "_syndic_return", "verify_minion":
		return (*Answers).absent
	}
	return nil
}

// Known reports whether minions may call a function.
func Known(cmd string) bool { return find(cmd) != nil }

// absent answers functions that stock masters have and this one lacks, in the way that they answer for missing
// data: resources of 3008 minions, syndics, and a check that no minion can call.
func (a *Answers) absent(context.Context, protocol.Verified) (any, error) {
	return map[string]any{}, nil
}
