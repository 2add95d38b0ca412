"""Topic permissions and parameters, as the commands set, list and clear them."""

from scenario import Scenario, ctl, status_of


def kept(step, what):
    return step.differs("they have no effect yet, which is said",
                        f"+         Warning: {what} are kept, but have no effect yet")


def no_vhost(step):
    return step.differs("one status and one text for a virtual host that is not there",
                        "-     status 69",
                        "+     status 65",
                        "-         Error:",
                        "-         Virtual host nope does not exist",
                        "+         Virtual host 'nope' does not exist")


def no_user(step):
    return step.differs("one text for a user that is not there",
                        "-         User nope does not exist",
                        '+         User "nope" does not exist')


SCENARIOS = [
    Scenario("topic-permissions-set-listed-and-cleared", [
        status_of("add_user", "{u}", "secret"),
        ctl("set_topic_permissions", "-p", "{v}", "{u}", "amq.topic", "^w", "^r"),
        ctl("set_topic_permissions", "-p", "{v}", "{u}", "nowhere", "", ".*"),
        ctl("list_topic_permissions", "-p", "{v}"),
        ctl("list_topic_permissions", "-p", "{v}", "--formatter", "json"),
        ctl("list_user_topic_permissions", "{u}"),
        ctl("clear_topic_permissions", "-p", "{v}", "{u}", "never"),
        ctl("clear_topic_permissions", "-p", "{v}", "{u}", "nowhere"),
        ctl("list_user_topic_permissions", "{u}"),
        ctl("clear_topic_permissions", "-p", "{v}", "{u}"),
        ctl("list_user_topic_permissions", "{u}"),
        ctl("list_topic_permissions", "-p", "{v}"),
    ], vhost="{v}"),
    Scenario("topic-permissions-refused", [
        status_of("add_user", "{u}", "secret"),
        no_user(ctl("set_topic_permissions", "nope", "amq.topic", "", "")),
        no_user(ctl("clear_topic_permissions", "nope")),
        no_vhost(ctl("set_topic_permissions", "-p", "nope", "{u}", "amq.topic", "", "")),
        no_vhost(ctl("clear_topic_permissions", "-p", "nope", "{u}")),
        ctl("list_topic_permissions", "-p", "nope"),
        status_of("set_topic_permissions", "{u}", "amq.topic", "(", ""),
        status_of("set_topic_permissions", "{u}", "amq.topic", ""),
        ctl("list_user_topic_permissions", "{u}"),
    ]),
    Scenario("parameters-set-listed-and-cleared", [
        kept(ctl("set_parameter", "-p", "{v}", "vhost-limits", "limits", '{"max-queues": 500}'),
             "parameters of component 'vhost-limits'"),
        ctl("list_parameters", "-p", "{v}"),
        ctl("list_parameters", "-p", "{v}", "--formatter", "json"),
        ctl("clear_parameter", "-p", "{v}", "vhost-limits", "limits"),
        ctl("clear_parameter", "-p", "{v}", "vhost-limits", "limits"),
        ctl("set_parameter", "-p", "{v}", "policy", "p", '{"pattern": "^{q}$"}'),
        ctl("clear_parameter", "-p", "{v}", "policy", "p"),
        status_of("set_operator_policy", "-p", "{v}", "{op}", "^{q}$", '{"max-length": 3}'),
        ctl("list_parameters", "-p", "{v}").differs(
            "entries of a table by name",
            '-         operator_policy\t{op}\t{"pattern":"^{q}$","definition":{"max-length":3},'
            '"priority":0,"apply-to":"all"}',
            '+         operator_policy\t{op}\t{"apply-to":"all","definition":{"max-length":3},'
            '"pattern":"^{q}$","priority":0}'),
        status_of("clear_operator_policy", "-p", "{v}", "{op}"),
        ctl("list_parameters", "-p", "{v}"),
        ctl("list_parameters", "-p", "nope"),
        status_of("set_parameter", "-p", "{v}", "vhost-limits", "limits", "{"),
        status_of("set_parameter", "-p", "nope", "vhost-limits", "limits", "{}"),
    ], vhost="{v}"),
    Scenario("global-parameters-set-and-cleared", [
        ctl("set_global_parameter", "{g}", '{"a": 1}'),
        ctl("clear_global_parameter", "{g}"),
        ctl("clear_global_parameter", "{g}"),
        status_of("set_global_parameter", "{g}", "{"),
    ]),
]
