/* Every struct and enum of the C interface behind one exported symbol, so that a debug build of this file holds their
 * layout. tools/check_abi.sh compares it with the baseline and fails when a type of the headers is missing here. */
#include <dsv4/abi.h>
#include <dsv4/plugin.h>
#include <dsv4/host.h>
#include <dsv4/program.h>
#include <dsv4/backend.h>
#include <dsv4/chat.h>
#include <dsv4/parser.h>
#include <dsv4/generate.h>
#include <dsv4/api.h>
#include <dsv4/spec.h>
#include <dsv4/transport.h>
#include <dsv4/engine.h>

struct dsv4_abi_surface {
    /* abi.h */
    const dsv4_str* str;
    const dsv4_error* error;
    const dsv4_code* code;
    /* plugin.h */
    const dsv4_instance* instance;
    const dsv4_plugin* plugin;
    const dsv4_kind* kind;
    const dsv4_plugin_status* plugin_status;
    const dsv4_security_posture* security_posture;
    /* host.h */
    const dsv4_label* label;
    const dsv4_tokenizer_service* tokenizer_service;
    const dsv4_grammar_service* grammar_service;
    const dsv4_lowering_service* lowering_service;
    const dsv4_host* host;
    const dsv4_log_level* log_level;
    const dsv4_metric_kind* metric_kind;
    const dsv4_grammar_syntax* grammar_syntax;
    /* program.h */
    const dsv4_format* format;
    const dsv4_precision* precision;
    const dsv4_element* element;
    const dsv4_scale* scale;
    const dsv4_state_kind* state_kind;
    /* backend.h */
    const dsv4_device_info* device_info;
    const dsv4_group* group;
    const dsv4_session_config* session_config;
    const dsv4_weight* weight;
    const dsv4_state_layout* state_layout;
    const dsv4_state_pool* state_pool;
    const dsv4_bias* bias;
    const dsv4_sampling* sampling;
    const dsv4_page_table* page_table;
    const dsv4_batch_slot* batch_slot;
    const dsv4_row* row;
    const dsv4_page_copy* page_copy;
    const dsv4_tensor* tensor;
    const dsv4_batch* batch;
    const dsv4_work* work;
    const dsv4_top_logprob* top_logprob;
    const dsv4_result* result;
    const dsv4_row_error* row_error;
    const dsv4_ticket_result* ticket_result;
    const dsv4_page_list* page_list;
    const dsv4_transfer* transfer;
    const dsv4_memory_report* memory_report;
    const dsv4_kernel_use* kernel_use;
    const dsv4_compile_options* compile_options;
    const dsv4_backend_table* backend_table;
    const dsv4_row_input* row_input;
    const dsv4_memory_kind* memory_kind;
    /* chat.h */
    const dsv4_chat_request* chat_request;
    const dsv4_segment* segment;
    const dsv4_prompt* prompt;
    const dsv4_segment_kind* segment_kind;
    /* parser.h */
    const dsv4_piece* piece;
    const dsv4_completion_options* completion_options;
    const dsv4_delta* delta;
    const dsv4_completion_end* completion_end;
    const dsv4_parser_table* parser_table;
    const dsv4_delta_kind* delta_kind;
    const dsv4_stopped_by* stopped_by;
    const dsv4_finish* finish;
    /* generate.h */
    const dsv4_limits* limits;
    const dsv4_generate_request* generate_request;
    const dsv4_token* token;
    const dsv4_usage* usage;
    const dsv4_timings* timings;
    const dsv4_event* event;
    const dsv4_generate_service* generate_service;
    const dsv4_event_kind* event_kind;
    const dsv4_finish_reason* finish_reason;
    /* api.h */
    const dsv4_translation* translation;
    const dsv4_api_table* api_table;
    /* spec.h */
    const dsv4_spec_info* spec_info;
    const dsv4_length_query* length_query;
    const dsv4_spec_table* spec_table;
    /* transport.h */
    const dsv4_message_header* message_header;
    const dsv4_channel_config* channel_config;
    const dsv4_transport_table* transport_table;
    /* engine.h */
    const dsv4_variable* variable;
    const dsv4_file* file;
    const dsv4_process* process;
    const dsv4_launch* launch;
    const dsv4_engine_table* engine_table;
};

__attribute__((visibility("default"))) struct dsv4_abi_surface dsv4_abi_surface;
