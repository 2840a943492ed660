// Package minion is the embeddable Salt minion: it signs in to one or several masters, receives jobs, runs them through
// a [modules.Registry] and returns the results. The same code answers salt-call ([Minion.Call]), with a master or
// without one.
//
//	m, err := minion.New(minion.Options{Opts: opts, Dialers: map[string]transport.Dialer{"zeromq": zeromq.New()}})
//	if err == nil {
//		err = m.Run(ctx)
//	}
//
// It promises: a job id runs at most once, also across crashes (package journal); no return is lost while its master is
// away (package spool); one job, one master, a slow resolver or a full disk never make it deaf.
//
// It does not read configuration files, flags or signals and does not choose modules or transports; cmd/ does.
//
// Salt's sources: salt/minion.py, salt/crypt.py (AsyncAuth), salt/cli/caller.py; the wire is described in protocol.
package minion
