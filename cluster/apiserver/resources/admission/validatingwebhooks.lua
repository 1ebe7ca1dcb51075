--- ValidatingWebhookConfigurations.
return require("cluster.apiserver.resources.admission.webhooks").strategy(false)
