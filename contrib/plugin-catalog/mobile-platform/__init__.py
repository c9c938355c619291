"""Registers the platform name "mobile". The relay carries the traffic; nothing connects from here."""


def register(ctx):
    ctx.register_platform(
        name="mobile",
        label="Mobile",
        adapter_factory=lambda cfg: None,
        check_fn=lambda: False,
        cron_deliver_env_var="MOBILE_HOME_CHANNEL",
        max_message_length=4096,
        platform_hint="You talk to the user in a phone app. Markdown is rendered.",
    )
