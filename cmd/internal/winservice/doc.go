// Package winservice runs a program as a service of Windows: the service manager starts and stops it, and the event log has
// when it started, stopped and failed. On other platforms it is empty.
package winservice
