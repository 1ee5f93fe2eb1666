// Goal: exactly the messages that Apache's ScramMessages takes are taken, with its values.
#include "security/scram_messages.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kaas::security {
namespace {

using namespace std::string_literals;

TEST(ScramMessages, TakesTheClientsFirstApart) {
    const auto parsed = parse_client_first("n,a=me=2Ctoo,m=x=y,n=a=2Cb=3D,r=no/n+ce=,ext=a=b");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->authorization_id, "me=2Ctoo");
    EXPECT_EQ(parsed->user, "a,b=");
    EXPECT_EQ(parsed->nonce, "no/n+ce=");
    EXPECT_EQ(parsed->bare, "m=x=y,n=a=2Cb=3D,r=no/n+ce=,ext=a=b");
}

TEST(ScramMessages, RefusesABadClientsFirst) {
    for (const std::string& message : {""s,
                                       "n"s,
                                       "n,"s,
                                       "n,,"s,
                                       "y,,n=user,r=nonce"s,
                                       "p=tls-unique,,n=user,r=nonce"s,
                                       "n,user,n=user,r=nonce"s,
                                       "n,a=,n=user,r=nonce"s,
                                       "n,,n=,r=nonce"s,
                                       "n,,n=user,r="s,
                                       "n,,n=user"s,
                                       "n,,r=nonce,n=user"s,
                                       "n,,m=,n=user,r=nonce"s,
                                       "n,,n=us=er,r=nonce"s,
                                       "n,,n=us=2cer,r=nonce"s,
                                       "n,,n=us=3,r=nonce"s,
                                       "n,,n=us\xC3\xA9r,r=nonce"s,
                                       "n,,n=us\0er,r=nonce"s,
                                       "n,,n=user,r=no nce"s,
                                       "n,,n=user,r=no\x7Fnce"s,
                                       "n,,n=user,r=nonce,"s,
                                       "n,,n=user,r=nonce,x"s,
                                       "n,,n=user,r=nonce,x="s,
                                       "n,,n=user,r=nonce,=x"s,
                                       "n,,n=user,r=nonce,x1=y"s,
                                       "n,,n=user,r=nonce,,x=y"s}) {
        EXPECT_FALSE(parse_client_first(message)) << message;
    }
}

TEST(ScramMessages, TakesTheServersFirstApart) {
    const auto parsed = parse_server_first("m=x,r=nonce,s=c2FsdA==,i=04096,x=y");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->nonce, "nonce");
    EXPECT_EQ(parsed->salt, "salt");
    EXPECT_EQ(parsed->iterations, 4096);
    EXPECT_EQ(parse_server_first("r=n,s=,i=1")->salt, "");
}

TEST(ScramMessages, RefusesABadServersFirst) {
    for (const char* message :
         {"", "r=nonce", "r=nonce,s=c2FsdA==", "r=nonce,i=1,s=c2FsdA==", "r=,s=c2FsdA==,i=1",
          "r=nonce,s=c2FsdA=,i=1", "r=nonce,s=c2FsdA,i=1", "r=nonce,s=c===,i=1",
          "r=nonce,s====,i=1", "r=nonce,s=c2 sdA==,i=1", "r=nonce,s=c2F=dA==,i=1",
          "r=nonce,s=c2FsdA==,i=", "r=nonce,s=c2FsdA==,i=0", "r=nonce,s=c2FsdA==,i=-1",
          "r=nonce,s=c2FsdA==,i=+1", "r=nonce,s=c2FsdA==,i=2147483648", "r=nonce,s=c2FsdA==,i=1x",
          "r=nonce,s=c2FsdA==,i=1,"}) {
        EXPECT_FALSE(parse_server_first(message)) << message;
    }
}

TEST(ScramMessages, TakesTheClientsFinalApart) {
    const auto parsed = parse_client_final("c=biws,r=nonce,x=y,p=cHJvb2Y=");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->channel_binding, "n,,");
    EXPECT_EQ(parsed->nonce, "nonce");
    EXPECT_EQ(parsed->proof, "proof");
    EXPECT_EQ(parsed->without_proof, "c=biws,r=nonce,x=y");
    // Java ignores the bits behind the last byte.
    EXPECT_EQ(parse_client_final("c=biws,r=nonce,p=cHJvb2Z=")->proof, "proof");
}

TEST(ScramMessages, RefusesABadClientsFinal) {
    for (const char* message :
         {"", "p=cHJvb2Y=", "c=biws,p=cHJvb2Y=", "c=biws,r=nonce", "c=biws,r=nonce,p=cHJvb2Y",
          "c=biw,r=nonce,p=cHJvb2Y=", "r=nonce,c=biws,p=cHJvb2Y=", "c=biws,r=,p=cHJvb2Y=",
          "c=biws,r=nonce,p=cHJvb2Y=,x=y",
          "c=biws,r=nonce,x,p=cHJvb2Y=", "c=biws,r=nonce,,p=cHJvb2Y=", "c=biws,r=nonce,p"}) {
        EXPECT_FALSE(parse_client_final(message)) << message;
    }
}

TEST(ScramMessages, TakesTheServersFinalApart) {
    EXPECT_EQ(parse_server_final("e=no such user")->error, "no such user");
    EXPECT_EQ(parse_server_final("v=c2ln,x=y")->signature, "sig");
    for (const char* message : {"", "e=", "e=a=b", "e=a,x=y", "v=c2l", "v=c2ln,", "x=y", "v"}) {
        EXPECT_FALSE(parse_server_final(message)) << message;
    }
}

}  // namespace
}  // namespace kaas::security
