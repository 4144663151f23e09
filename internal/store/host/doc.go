// Package host reads the counters of the machine that matter to a store of messages: the disks of some folders, the processor, memory, the
// network, and what of these this process has. It reads /proc; where there is none, there are no counters.
package host
