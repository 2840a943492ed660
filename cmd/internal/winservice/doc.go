// Package winservice runs a program as a Windows service. The service manager starts and stops the program, and
// starts, stops and failures are recorded in the event log. On other platforms the package is empty.
package winservice
