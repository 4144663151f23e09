package biztalk

import "slices"

// answerClients translates that clients of a receive port get answers. Where its adapters cannot give them, its locations are disabled.
func (t *translation) answerClients(port *node, name string, settings object, locations []*node, translated []object) {
	disable := func() {
		for _, location := range translated {
			location["enabled"] = false
		}
	}
	if len(locations) == 0 || slices.ContainsFunc(translated, func(l object) bool { return l["adapter"] != "HTTP" }) {
		disable()
		t.omitStopping(port, kindReceivePort, name, "its answers", "clients of its adapters cannot wait for an answer",
			"take requests in by HTTP, and enable the locations")
		return
	}
	settings["responds"] = true
	e := &endpoint{t: t, at: port, kind: kindReceivePort, name: name}
	e.usePipelineOfAnswers(locations[0], settings, "send", []string{"SendPipeline", "SendPipelineName"}, "SendPipelineData")
	if e.isStopped {
		disable()
	}
}

// takeAnswers translates that a send port takes answers.
func (t *translation) takeAnswers(port *node, e *endpoint, settings object) {
	if e.adapter != "HTTP" {
		e.stop(port, "its answers", "its adapter takes none, or others",
			"send by HTTP, or by a function of PostgreSQL that answers, and start the port")
		return
	}
	settings["responds"] = true
	e.usePipelineOfAnswers(port, settings, "receive", []string{"ReceivePipeline", "ReceivePipelineName"}, "ReceivePipelineData")
}

// usePipelineOfAnswers translates the pipeline of answers, which has no settings in one place alone.
func (e *endpoint) usePipelineOfAnswers(at *node, settings object, direction string, elements []string, data string) {
	used := object{}
	e.t.usePipeline(at, e, used, direction, elements, data)
	if name, has := used["pipeline"]; has {
		settings["response_pipeline"] = name
	}
	if _, has := used["pipeline_settings"]; has {
		e.stop(at, "settings of the pipeline of answers", "they are those of the pipeline here",
			"define a pipeline with these settings, and name it as response_pipeline")
	}
}
