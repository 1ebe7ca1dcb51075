--- MutatingWebhookConfigurations.
return require("cluster.apiserver.resources.admission.webhooks").strategy(true)
