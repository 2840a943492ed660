package trove

import (
	"context"

	"github.com/brine-salt/brine/modules"
)

// The descriptions of trove.instance.service_status that a guest reports.
const (
	statusHealthy         = "healthy"
	statusRunning         = "running"
	statusShutdown        = "shutdown"
	statusFailed          = "failed to spawn"
	statusBuilding        = "building"
	statusRestartRequired = "restart required"
	statusInstanceReady   = "instance ready"
)

// now is the time as Trove's messages have it.
func now(e *modules.Env) float64 { return float64(e.Now().UnixMicro()) / 1e6 }

// heartbeatTag is the end of a heartbeat's tag, which begins with salt/beacon/<id>/trove/.
const heartbeatTag = "heartbeat"

// heartbeat is the data of a heartbeat's event, without the minion's id.
func heartbeat(e *modules.Env, status string) map[string]any {
	return map[string]any{"payload": map[string]any{"service_status": status}, "sent": now(e)}
}

// report sends a heartbeat at once, in the form of the beacon's. Without force it is silent until prepare has ended.
func (g *guest) report(ctx context.Context, status string, force bool) {
	if !force && !isPrepared(g.c.Env, g.settings) {
		return
	}
	data := heartbeat(g.c.Env, status)
	data["id"] = g.c.ID
	g.send(ctx, map[string]any{"cmd": "_minion_event", "id": g.c.ID, "pretag": nil, "events": []any{map[string]any{
		"tag": "salt/beacon/" + g.c.ID + "/trove/" + heartbeatTag, "data": data, "beacon_name": "trove"}}})
}

// conductor fires what Trove's agent sends to its conductor: update_backup or report_root. Arguments are those of the conductor's
// interface, with the time. The end of a cast needs no message: it is the job's return.
func (g *guest) conductor(ctx context.Context, method string, args map[string]any) {
	args["instance_id"], args["sent"] = g.c.ID, now(g.c.Env)
	if g.c.Master == nil {
		g.c.Logger().Warn("Cannot tell Trove's conductor: there is no master", "method", method)
		return
	}
	if err := g.c.Master.Fire(ctx, "trove/conductor/"+method, args); err != nil {
		g.c.Logger().Warn("Cannot tell Trove's conductor", "method", method, "err", err)
	}
}

func (g *guest) send(ctx context.Context, load map[string]any) {
	if g.c.Master == nil {
		g.c.Logger().Warn("Cannot send a heartbeat: there is no master")
		return
	}
	if _, err := g.c.Master.Request(ctx, load); err != nil {
		g.c.Logger().Warn("Cannot send a heartbeat", "err", err)
	}
}
